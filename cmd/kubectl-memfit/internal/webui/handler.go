// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/htmlreport"
)

const (
	// freshFor is how long a result is served without reading again; browsers ask at half that rate.
	freshFor = 15 * time.Second
	// share of the time is spent on reading at most: one part in so many. Reading a large cluster takes seconds.
	share = 10
	// readTimeout is how long a read may take before the page reports that the API server does not answer.
	readTimeout = 30 * time.Second
)

// Read gathers what the page shows.
type Read func(context.Context) (*htmlreport.Input, error)

// Handler answers with the page, read again when it is asked for and no longer fresh.
type Handler struct {
	read  Read
	now   func() time.Time
	port  string
	token string

	mu      sync.Mutex // held while reading, so that others who ask meanwhile get what comes of it
	last    *htmlreport.Input
	took    time.Duration
	tried   time.Time // when reading last ended
	problem error     // of that
}

// New reads once, so that an error is reported at the start. It answers at Path of 127.0.0.1:port.
func New(ctx context.Context, port int, read Read, now func() time.Time) (*Handler, error) {
	h := &Handler{read: read, now: now, port: strconv.Itoa(port), token: rand.Text()}
	if h.again(ctx); h.problem != nil {
		return nil, h.problem
	}
	return h, nil
}

// Path of the page. Nobody can guess it: it has 128 random bits.
func (h *Handler) Path() string { return "/" + h.token }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Cache-Control":                "no-store",
		"Content-Security-Policy":      contentPolicy,
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy":              "no-referrer", // the token is in the address
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
	} {
		w.Header().Set(name, value)
	}
	if status, text := h.refuses(r); status != 0 {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		http.Error(w, text, status)
		return
	}
	var page bytes.Buffer
	if err := htmlreport.Write(&page, h.input(r)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // the client may be gone
}

// contentPolicy lets the page run the one script that it comes with, which may ask for this page again, and load
// nothing else; it has only styles of its own.
var contentPolicy = "default-src 'none'; script-src " + htmlreport.ScriptSource() + "; connect-src 'self'; " +
	"style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// refuses returns why a request gets no page; 0: it gets one.
func (h *Handler) refuses(r *http.Request) (status int, text string) {
	host := r.Host
	if !strings.Contains(host, ":") {
		host += ":80" // browsers leave it out
	}
	if host != "127.0.0.1:"+h.port && host != "localhost:"+h.port {
		return http.StatusMisdirectedRequest, fmt.Sprintf("This is kubectl memfit ui. It answers to 127.0.0.1:%s and "+
			"localhost:%s only; the request was for %q.\nThrough ssh, use the same port on both sides: "+
			"ssh -L %s:127.0.0.1:%s HOST", h.port, h.port, r.Host, h.port, h.port)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, "This is kubectl memfit ui, which is read-only: use GET or HEAD."
	}
	given := strings.Trim(r.URL.Path, "/")
	if subtle.ConstantTimeCompare([]byte(given), []byte(h.token)) != 1 {
		return http.StatusForbidden, "This is kubectl memfit ui, and the address has no valid token; each start has a " +
			"new one.\nOpen the whole address that the command printed."
	}
	return 0, ""
}

// input returns what the page shows now.
func (h *Handler) input(r *http.Request) *htmlreport.Input {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now().Sub(h.tried) >= h.fresh() {
		h.again(context.WithoutCancel(r.Context())) // others may wait for it when this one has gone
	}
	in := *h.last
	in.Served = &htmlreport.Served{Refused: h.tried, Problem: h.problem}
	if !r.URL.Query().Has("paused") {
		in.Served.Every = 2 * h.fresh()
	}
	return &in
}

// fresh is how long what was read is not read again.
func (h *Handler) fresh() time.Duration { return max(freshFor, share*h.took) }

// again reads. What cannot be read leaves what was.
func (h *Handler) again(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	from := h.now()
	in, err := h.read(ctx)
	h.tried, h.problem = h.now(), err
	if err == nil {
		h.last, h.took = in, h.tried.Sub(from)
	}
}
