// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// gate is a proxy between one replica of the manager and the API server. It can refuse connections, freeze them, and
// hold single requests.
type gate struct {
	url    string
	target *url.URL
	// transport reaches the API server.
	transport http.RoundTripper
	proxy     *httputil.ReverseProxy

	mu     sync.Mutex
	conns  map[*gatedConn]struct{}
	cut    bool          // connections are refused
	frozen chan struct{} // closed when bytes pass again; nil: not frozen
	holds  []*heldRequest
	// gap: events of watched pods are dropped.
	gap atomic.Bool
	// writes counts write requests, except for leases.
	writes atomic.Int64
	// dropped counts the events that were dropped.
	dropped atomic.Int64
}

// heldRequest is one request that the gate holds.
type heldRequest struct {
	match func(*http.Request) bool
	// after: the API server has processed it, and its response is held. Otherwise it has not reached the API server.
	after bool
	// reached is closed when a request is held, release to let it continue, done when it has been processed.
	reached, release chan struct{}
	done             chan struct{}
	once             sync.Once
	status           int
}

func newGate(t *testing.T, config *rest.Config, pair tls.Certificate) *gate {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{target: target, transport: transport, conns: map[*gatedConn]struct{}{}}
	quiet := log.New(io.Discard, "", 0)
	g.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// filter reads the events of a watch, which API servers since 1.37 compress if it starts with a list.
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		ModifyResponse: g.filter,
		// If the API server is down, the client's connection fails, too.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed with the test
	if err != nil {
		t.Fatal(err)
	}
	g.url = "https://" + listener.Addr().String()
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	server.Protocols = protocols
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	go func() { _ = server.ServeTLS(&gatedListener{listener, g}, "", "") }()
	t.Cleanup(func() {
		g.thaw()
		_ = server.Close()
	})
	return g
}

// ServeHTTP forwards requests, except those that are to be held.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases/") {
		g.writes.Add(1)
	}
	if h := g.take(r); h != nil {
		g.hold(w, r, h)
		return
	}
	g.proxy.ServeHTTP(w, r)
}

// next holds the next request that matches.
func (g *gate) next(after bool, match func(*http.Request) bool) *heldRequest {
	h := &heldRequest{
		match: match, after: after,
		reached: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{}),
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, h)
	return h
}

// resume lets the held request continue. If none is held yet, none will be.
func (g *gate) resume(h *heldRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.holds {
		if other == h {
			g.holds = append(g.holds[:i:i], g.holds[i+1:]...)
			break
		}
	}
	h.once.Do(func() { close(h.release) })
}

func (g *gate) take(r *http.Request) *heldRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, h := range g.holds {
		if h.match(r) {
			g.holds = append(g.holds[:i:i], g.holds[i+1:]...)
			return h
		}
	}
	return nil
}

// hold holds a request and forwards it even if its sender has exited meanwhile, as a network does.
func (g *gate) hold(w http.ResponseWriter, r *http.Request, h *heldRequest) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	send := func() *http.Response {
		out := r.Clone(context.Background())
		out.URL.Scheme, out.URL.Host, out.RequestURI = g.target.Scheme, g.target.Host, ""
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp, err := g.transport.RoundTrip(out)
		if err != nil {
			return nil
		}
		h.status = resp.StatusCode
		return resp
	}
	answer := make(chan *http.Response, 1)
	go func() {
		defer close(h.done)
		var resp *http.Response
		if h.after {
			resp = send()
		}
		close(h.reached)
		<-h.release
		if !h.after {
			resp = send()
		}
		answer <- resp
	}()
	select {
	case <-r.Context().Done():
		return // the sender has exited; the request is still forwarded
	case resp := <-answer:
		if resp == nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}
}

// refuse closes all connections and refuses new ones.
func (g *gate) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = true
	for c := range g.conns {
		_ = c.Conn.Close()
	}
}

// accept accepts connections again.
func (g *gate) accept() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = false
}

// freeze stops all bytes without closing connections, like a network that loses every packet.
func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen == nil {
		g.frozen = make(chan struct{})
	}
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen != nil {
		close(g.frozen)
		g.frozen = nil
	}
}

// filter drops the events of pod watches while gap is set.
func (g *gate) filter(resp *http.Response) error {
	r := resp.Request
	if r.URL.Query().Get("watch") == "" || !strings.HasSuffix(r.URL.Path, "/api/v1/pods") {
		return nil
	}
	from, to := io.Pipe()
	body, binary := resp.Body, strings.Contains(resp.Header.Get("Content-Type"), "protobuf")
	resp.Body = struct {
		io.Reader
		io.Closer
	}{from, body}
	go func() {
		in := bufio.NewReader(body)
		for {
			event, err := nextEvent(in, binary)
			if len(event) > 0 && g.gap.Load() {
				g.dropped.Add(1)
			} else if _, failed := to.Write(event); failed != nil {
				return
			}
			if err != nil {
				_ = to.CloseWithError(err)
				return
			}
		}
	}()
	return nil
}

// nextEvent reads the next encoded event of a watch: a line of JSON, or a binary message with its length.
func nextEvent(in *bufio.Reader, isBinary bool) ([]byte, error) {
	if !isBinary {
		return in.ReadBytes('\n')
	}
	length := make([]byte, 4)
	if _, err := io.ReadFull(in, length); err != nil {
		return nil, err
	}
	event := make([]byte, 4+binary.BigEndian.Uint32(length))
	copy(event, length)
	_, err := io.ReadFull(in, event[4:])
	return event, err
}

type gatedListener struct {
	net.Listener
	gate *gate
}

// Accept implements net.Listener.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &gatedConn{Conn: conn, gate: l.gate}
		l.gate.mu.Lock()
		refused := l.gate.cut
		if !refused {
			l.gate.conns[c] = struct{}{}
		}
		l.gate.mu.Unlock()
		if !refused {
			return c, nil
		}
		_ = conn.Close()
	}
}

type gatedConn struct {
	net.Conn
	gate *gate
}

// pass waits while the gate is frozen.
func (c *gatedConn) pass() {
	c.gate.mu.Lock()
	frozen := c.gate.frozen
	c.gate.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// Read implements net.Conn.
func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.pass()
	return n, err
}

// Write implements net.Conn.
func (c *gatedConn) Write(p []byte) (int, error) {
	c.pass()
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
