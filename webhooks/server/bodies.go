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
)

const (
	// MaxBody is the request limit of an API server: twice etcd's limit for an object, 1.5 MiB.
	MaxBody = 3 << 20
	// maxUnread bounds the rest of an oversized request that is read and dropped before the answer.
	maxUnread = 2 * MaxBody
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

// refusal is the reason for reading a request only in part.
type refusal struct {
	reason string // for the metrics
	code   int
	why    string
}

var (
	tooLarge = &refusal{
		reasonTooLarge, http.StatusRequestEntityTooLarge,
		fmt.Sprintf("the request exceeds the maximum of %d bytes", MaxBody),
	}
	tooSlow = &refusal{reasonSlow, http.StatusRequestTimeout, "the request was received too slowly"}
	cutOff  = &refusal{reasonCutOff, http.StatusBadRequest, "the request is incomplete"}
	tooBusy = &refusal{reasonBusy, http.StatusServiceUnavailable, "memfit is busy with other large requests"}
)

// handler reads the body of each request, within bounds, before it calls the webhook.
func (cs *connections) handler(hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r.Context())
		defer cs.release(c, 0)
		text, refused := cs.read(c, r)
		if refused == nil {
			cs.setBusy(c, true)
			defer cs.setBusy(c, false)
			var taken int64
			taken, refused = cs.turn(r.Context(), len(text))
			defer cs.turns.Release(taken)
		}
		switch {
		case refused == nil:
			r.Body = io.NopCloser(bytes.NewReader(text))
			hook.ServeHTTP(w, r)
		case cs.has(c): // otherwise the connection was closed, which was counted
			cs.refuse(w, r, hook, text, refused)
		}
	})
}

func (cs *connections) refuse(w http.ResponseWriter, r *http.Request, hook http.Handler, text []byte, by *refusal) {
	cs.metrics.refused.WithLabelValues(by.reason).Inc()
	if by == tooLarge { // otherwise the client gets a reset connection
		_, _ = io.CopyN(io.Discard, r.Body, maxUnread) // at most until the deadline of the connection
	}
	if h, ok := hook.(Refuser); ok {
		h.Refuse(w, text, by.why)
		return
	}
	http.Error(w, "memfit: "+by.why, by.code)
}

// read reads a body into memory that grows with the data, so that the announced size alone costs nothing.
func (cs *connections) read(c *connection, r *http.Request) (text []byte, by *refusal) {
	if !cs.hold(c, beginning) {
		return nil, tooBusy
	}
	text = make([]byte, 0, beginning)
	for {
		n, err := r.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case len(text) > MaxBody, len(text) > 0 && r.ContentLength > MaxBody:
			return text, tooLarge
		case errors.Is(err, io.EOF):
			return text, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return text, tooSlow
		case err != nil:
			return text, cutOff
		case len(text) < cap(text):
			continue
		}
		size := min(4*cap(text), MaxBody+1)
		if r.ContentLength >= int64(cap(text)) && r.ContentLength < int64(size) {
			size = int(r.ContentLength) + 1 // detecting the end needs one more byte
		}
		if !cs.hold(c, size) {
			return text, tooBusy
		}
		text = append(make([]byte, 0, size), text...)
		cs.release(c, size)
	}
}

// turn waits until a body of this size can be handled beside the others.
func (cs *connections) turn(ctx context.Context, size int) (taken int64, by *refusal) {
	if size <= usual {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if cs.turns.Acquire(ctx, int64(size)) != nil {
		return 0, tooBusy
	}
	return int64(size), nil
}
