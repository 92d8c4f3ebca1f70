// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// MaxBody is the request limit of an API server, twice that of etcd for an object: 1.5 MiB.
	MaxBody = 3 << 20
	// mostUnread bounds the rest of an oversized request that is read and dropped before the answer.
	mostUnread = 2 * MaxBody
	// maxBodies bounds the memory of all bodies together. A usual review has 4 to 20 KiB, and takes less than 1 ms.
	maxBodies = 16 << 20
	// beginning is the initial buffer of a connection. The UID of a review is in its first 200 bytes.
	beginning = 4 << 10
	// usual is the largest body that is handled without waiting for others.
	usual = 64 << 10
	// patience is how long a larger body waits for its turn. API servers give the webhook 2 s.
	patience = time.Second
)

// Refuser is a webhook that can answer a request that was read only in part, with the reason.
type Refuser interface {
	Refuse(w http.ResponseWriter, beginning []byte, why string)
}

// bodies reads the body of each request, within bounds, before it calls the webhook.
type bodies struct {
	connections *connections
	metrics     *Metrics
	// turns limits large bodies to MaxBody bytes at a time, because decoding takes many times their size.
	turns *semaphore.Weighted
}

func newBodies(cs *connections, metrics *Metrics) *bodies {
	return &bodies{connections: cs, metrics: metrics, turns: semaphore.NewWeighted(MaxBody)}
}

// handler is a webhook behind the bounds.
func (b *bodies) handler(hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r.Context())
		k := &keeping{bodies: b, connection: c}
		defer k.end()
		text, refusal := k.read(r)
		if refusal == nil {
			b.connections.setBusy(c, true)
			defer b.connections.setBusy(c, false)
			refusal = k.turn(r.Context(), len(text))
		}
		if refusal != nil && !b.connections.has(c) {
			return // connection closed, which was counted
		}
		if refusal != nil {
			b.metrics.refused.WithLabelValues(refusal.reason).Inc()
			if refusal.reason == reasonTooLarge { // otherwise the client gets a reset connection
				_, _ = io.CopyN(io.Discard, r.Body, mostUnread) // at most until the deadline of the connection
			}
			refuse(w, hook, text, refusal)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		hook.ServeHTTP(w, r)
	})
}

// refusal is the reason for reading a request only in part.
type refusal struct {
	reason string // for the metrics
	code   int
	why    string
}

func refuse(w http.ResponseWriter, hook http.Handler, beginning []byte, r *refusal) {
	if h, ok := hook.(Refuser); ok {
		h.Refuse(w, beginning, r.why)
		return
	}
	http.Error(w, "memfit: "+r.why, r.code)
}

// keeping is the memory held for one request.
type keeping struct {
	*bodies

	connection *connection
	held       int
	turns      int64
}

// end releases everything.
func (k *keeping) end() {
	k.bodies.turns.Release(k.turns)
	k.connections.release(k.connection, k.held)
}

// read reads a body into memory that grows with the data, so that the announced size alone costs nothing.
func (k *keeping) read(r *http.Request) (text []byte, because *refusal) {
	if !k.connections.hold(k.connection, beginning) {
		return nil, tooBusy()
	}
	k.held = beginning
	text = make([]byte, 0, beginning)
	tooLarge := &refusal{
		reasonTooLarge, http.StatusRequestEntityTooLarge,
		fmt.Sprintf("the request exceeds the maximum of %d bytes", MaxBody),
	}
	for {
		n, err := r.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return text, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return text, &refusal{reasonSlow, http.StatusRequestTimeout, "the request was received too slowly"}
		case err != nil:
			return text, &refusal{reasonCutOff, http.StatusBadRequest, "the request is incomplete"}
		case len(text) > MaxBody, len(text) > 0 && r.ContentLength > MaxBody:
			return text, tooLarge
		}
		if len(text) < cap(text) {
			continue
		}
		larger, ok := k.grow(text, r.ContentLength)
		if !ok {
			return text, tooBusy()
		}
		text = larger
	}
}

// grow moves a body of this announced size to a larger buffer; false if no memory is left.
func (k *keeping) grow(text []byte, announced int64) ([]byte, bool) {
	size := min(4*cap(text), MaxBody+1)
	if announced >= int64(cap(text)) && announced < int64(size) {
		size = int(announced) + 1 // detecting the end needs one more byte
	}
	if !k.connections.hold(k.connection, size) {
		return nil, false
	}
	k.connections.release(k.connection, cap(text))
	k.held = size
	return append(make([]byte, 0, size), text...), true
}

// turn waits until a body of this size can be handled beside the others.
func (k *keeping) turn(ctx context.Context, size int) *refusal {
	if size <= usual {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	turns := int64(min(size, MaxBody))
	if k.bodies.turns.Acquire(ctx, turns) != nil {
		return tooBusy()
	}
	k.turns = turns
	return nil
}

func tooBusy() *refusal {
	return &refusal{reasonBusy, http.StatusServiceUnavailable, "memfit is busy with other large requests"}
}
