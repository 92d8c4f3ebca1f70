// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// connections has all open connections, and the memory held for their requests.
type connections struct {
	max     int // connections
	maxHeld int // bytes of bodies
	metrics *Metrics
	// turns limits large bodies to MaxBody bytes at a time, because decoding takes many times their size.
	turns *semaphore.Weighted

	mu   sync.Mutex
	open map[*connection]struct{}
	held int    // bytes of bodies
	last uint64 // last number given to a connection
}

// connection is one open connection.
type connection struct {
	net.Conn

	all    *connections
	source string // address without port
	turn   uint64 // higher the later the connection was accepted or its last request began or ended
	// busy is true if a request is being answered. The connection is then left alone, because that does not take long.
	busy bool
	held int // bytes of the body of the current request
}

func newConnections(most, bytes int, metrics *Metrics) *connections {
	return &connections{
		max: most, maxHeld: bytes, metrics: metrics, turns: semaphore.NewWeighted(MaxBody), open: map[*connection]struct{}{},
	}
}

// listener accepts connections within the bound.
type listener struct {
	net.Listener

	all *connections
}

// Accept admits a new connection by closing the oldest one of the address with the most. If it waited instead,
// any client could lock out the API server by opening connections up to the bound.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.all.add(conn); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// add adds a connection; nil if all others are busy.
func (cs *connections) add(conn net.Conn) *connection {
	source, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		source = conn.RemoteAddr().String()
	}
	c := &connection{Conn: conn, all: cs, source: source}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.open) >= cs.max && !cs.giveUp(func(other *connection) bool { return !other.busy }) {
		cs.metrics.refused.WithLabelValues(reasonConnections).Inc()
		return nil
	}
	cs.open[c] = struct{}{}
	c.turn = cs.next()
	cs.metrics.connections.Set(float64(len(cs.open)))
	return c
}

func (cs *connections) next() uint64 {
	cs.last++
	return cs.last
}

// giveUp closes the connection with the lowest turn for which may is true, of the addresses with the most connections.
func (cs *connections) giveUp(may func(*connection) bool) bool {
	from := map[string]int{}
	for c := range cs.open {
		from[c.source]++
	}
	var victim *connection
	for c := range cs.open {
		if may(c) && (victim == nil || from[c.source] > from[victim.source] ||
			from[c.source] == from[victim.source] && c.turn < victim.turn) {
			victim = c
		}
	}
	if victim == nil {
		return false
	}
	cs.metrics.refused.WithLabelValues(reasonGivenUp).Inc()
	cs.forget(victim)
	_ = victim.Conn.Close()
	return true
}

// forget must be called with the lock held.
func (cs *connections) forget(c *connection) {
	if _, open := cs.open[c]; !open {
		return
	}
	delete(cs.open, c)
	cs.held -= c.held
	c.held = 0
	cs.metrics.connections.Set(float64(len(cs.open)))
	cs.metrics.bytes.Set(float64(cs.held))
}

// Close closes the connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.forget(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// follow implements [http.Server.ConnState].
func (cs *connections) follow(conn net.Conn, state http.ConnState) {
	c := under(conn)
	if c == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch state {
	case http.StateActive, http.StateIdle:
		c.busy, c.turn = false, cs.next()
	case http.StateClosed, http.StateHijacked:
		cs.forget(c)
	case http.StateNew:
	}
}

// under returns the connection under TLS; nil if it is not from this listener.
func under(conn net.Conn) *connection {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

// hold takes memory for the body of a request, if necessary from the slowest sender; false: none is available.
func (cs *connections) hold(c *connection, bytes int) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, open := cs.open[c]; !open {
		return false
	}
	for cs.held+bytes > cs.maxHeld {
		if !cs.giveUp(func(other *connection) bool { return other != c && other.held > 0 && !other.busy }) {
			return false
		}
	}
	cs.held += bytes
	c.held += bytes
	cs.metrics.bytes.Set(float64(cs.held))
	return true
}

// release releases the memory of a connection's request above but bytes, unless closing it already did.
func (cs *connections) release(c *connection, but int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	but = min(but, c.held)
	cs.held -= c.held - but
	c.held = but
	cs.metrics.bytes.Set(float64(cs.held))
}

// has reports whether a connection is still open.
func (cs *connections) has(c *connection) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	_, open := cs.open[c]
	return open
}

// setBusy records whether a request of the connection is being answered.
func (cs *connections) setBusy(c *connection, busy bool) {
	cs.mu.Lock()
	c.busy = busy
	cs.mu.Unlock()
}
