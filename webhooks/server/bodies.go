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
	// MaxBody is an API server's maximum request size: twice etcd's maximum of 1.5 MiB for an object.
	MaxBody = 3 << 20
	// maxDiscarded limits how much more of an oversized request is read and discarded before the response.
	maxDiscarded = 2 * MaxBody
	// maxBodies limits the memory of all bodies together. Most reviews have 4 to 20 KiB and take less than 1 ms.
	maxBodies = 16 << 20
	// initialBuffer is the initial memory of a body. The UID of a review is in its first 200 bytes.
	initialBuffer = 4 << 10
	// smallBody is the size of the largest body that is handled without waiting for other bodies.
	smallBody = 64 << 10
	// largeBodyWait is how long a larger body waits for other bodies. API servers time out after 2 s.
	largeBodyWait = time.Second
)

// Refuser is a webhook with a response for requests that the server refuses. beginning is what was read of the request.
type Refuser interface {
	Refuse(w http.ResponseWriter, beginning []byte, why string)
}

// refusal is a reason for not passing a request to its webhook.
type refusal struct {
	reason string // metric label
	code   int    // HTTP status
	why    string // message to the client
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

// handler returns a handler that reads the body of each request within the limits, and then calls the webhook.
func (cs *connections) handler(hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r.Context())
		defer cs.shrink(c, 0)
		body, refused := cs.read(c, r)
		if refused == nil {
			cs.setBusy(c, true)
			defer cs.setBusy(c, false)
			var acquired int64
			acquired, refused = cs.awaitTurn(r.Context(), len(body))
			defer cs.largeBodies.Release(acquired)
		}
		switch {
		case refused == nil:
			r.Body = io.NopCloser(bytes.NewReader(body))
			hook.ServeHTTP(w, r)
		case cs.isOpen(c): // otherwise closeOldest closed and counted it
			cs.refuse(w, r, hook, body, refused)
		}
	})
}

func (cs *connections) refuse(
	w http.ResponseWriter, r *http.Request, hook http.Handler, body []byte, refused *refusal,
) {
	cs.metrics.refused.WithLabelValues(refused.reason).Inc()
	if refused == tooLarge { // without reading the rest, the client would get a connection reset instead of the response
		_, _ = io.CopyN(io.Discard, r.Body, maxDiscarded) // ends at the connection's read deadline
	}
	if h, ok := hook.(Refuser); ok {
		h.Refuse(w, body, refused.why)
		return
	}
	http.Error(w, "memfit: "+refused.why, refused.code)
}

// read reads a body. Its buffer grows with the received data, so a large Content-Length alone takes no memory.
func (cs *connections) read(c *connection, r *http.Request) (body []byte, refused *refusal) {
	if !cs.reserve(c, initialBuffer) {
		return nil, tooBusy
	}
	body = make([]byte, 0, initialBuffer)
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > MaxBody, len(body) > 0 && r.ContentLength > MaxBody:
			return body, tooLarge
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return body, tooSlow
		case err != nil:
			return body, cutOff
		case len(body) < cap(body):
			continue
		}
		size := min(4*cap(body), MaxBody+1)
		if r.ContentLength >= int64(cap(body)) && r.ContentLength < int64(size) {
			size = int(r.ContentLength) + 1 // detecting the end needs one more byte
		}
		if !cs.reserve(c, size) {
			return body, tooBusy
		}
		body = append(make([]byte, 0, size), body...)
		cs.shrink(c, size)
	}
}

// awaitTurn waits until a body of this size fits beside the large bodies in progress. The caller releases acquired.
func (cs *connections) awaitTurn(ctx context.Context, size int) (acquired int64, refused *refusal) {
	if size <= smallBody {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, largeBodyWait)
	defer cancel()
	if cs.largeBodies.Acquire(ctx, int64(size)) != nil {
		return 0, tooBusy
	}
	return int64(size), nil
}
