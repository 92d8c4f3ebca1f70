// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// connections tracks all open connections and the memory of their request bodies.
type connections struct {
	max          int // open connections
	maxBodyBytes int
	metrics      *Metrics
	// largeBodies limits the large bodies handled in parallel to MaxBody bytes: decoding takes many times their size.
	largeBodies *semaphore.Weighted

	mu           sync.Mutex
	open         map[*connection]struct{}
	bodyBytes    int    // memory of all request bodies
	lastActivity uint64 // highest activity of a connection so far
}

// connection is one open connection.
type connection struct {
	net.Conn

	all      *connections
	source   string // client address without port
	activity uint64 // orders connections by when they were accepted or their last request began or ended
	// busy is true while a webhook answers a request. A busy connection is not closed, because answers take little time.
	busy      bool
	bodyBytes int // memory of the current request's body
}

func newConnections(most, bytes int, metrics *Metrics) *connections {
	return &connections{
		max: most, maxBodyBytes: bytes, metrics: metrics, largeBodies: semaphore.NewWeighted(MaxBody),
		open: map[*connection]struct{}{},
	}
}

// listener accepts connections up to the maximum.
type listener struct {
	net.Listener

	all *connections
}

// Accept accepts a new connection. At the maximum, it closes an old one: if it waited instead, any client could lock
// out the API server by opening the maximum of connections.
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

// add adds a connection. It returns nil if the maximum is reached and all other connections are busy.
func (cs *connections) add(conn net.Conn) *connection {
	source, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		source = conn.RemoteAddr().String()
	}
	c := &connection{Conn: conn, all: cs, source: source}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.open) >= cs.max && !cs.closeOldest(func(other *connection) bool { return !other.busy }) {
		cs.metrics.refused.WithLabelValues(reasonConnections).Inc()
		return nil
	}
	cs.open[c] = struct{}{}
	c.activity = cs.nextActivity()
	cs.metrics.connections.Set(float64(len(cs.open)))
	return c
}

func (cs *connections) nextActivity() uint64 {
	cs.lastActivity++
	return cs.lastActivity
}

// closeOldest closes a connection for which may is true: of the address with the most connections, the one with the
// lowest activity. It returns false if it found none. The caller must hold the lock.
func (cs *connections) closeOldest(may func(*connection) bool) bool {
	count := map[string]int{} // by source
	for c := range cs.open {
		count[c.source]++
	}
	var victim *connection
	for c := range cs.open {
		if may(c) && (victim == nil || count[c.source] > count[victim.source] ||
			count[c.source] == count[victim.source] && c.activity < victim.activity) {
			victim = c
		}
	}
	if victim == nil {
		return false
	}
	cs.metrics.refused.WithLabelValues(reasonClosed).Inc()
	cs.remove(victim)
	_ = victim.Conn.Close()
	return true
}

// remove removes a connection and its memory, if it is still open. The caller must hold the lock.
func (cs *connections) remove(c *connection) {
	if _, open := cs.open[c]; !open {
		return
	}
	delete(cs.open, c)
	cs.bodyBytes -= c.bodyBytes
	c.bodyBytes = 0
	cs.metrics.connections.Set(float64(len(cs.open)))
	cs.metrics.bytes.Set(float64(cs.bodyBytes))
}

// Close closes the connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.remove(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// stateChanged implements [http.Server.ConnState].
func (cs *connections) stateChanged(conn net.Conn, state http.ConnState) {
	c := unwrap(conn)
	if c == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch state {
	case http.StateActive, http.StateIdle:
		c.busy, c.activity = false, cs.nextActivity()
	case http.StateClosed, http.StateHijacked:
		cs.remove(c)
	case http.StateNew:
	}
}

// unwrap returns the connection below TLS; nil if it is not from a listener of this package.
func unwrap(conn net.Conn) *connection {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

// reserve reserves memory for the request body of c. At the maximum, it closes connections whose requests are still
// being received. It returns false if that is not enough, or c is closed.
func (cs *connections) reserve(c *connection, bytes int) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, open := cs.open[c]; !open {
		return false
	}
	for cs.bodyBytes+bytes > cs.maxBodyBytes {
		if !cs.closeOldest(func(other *connection) bool { return other != c && other.bodyBytes > 0 && !other.busy }) {
			return false
		}
	}
	cs.bodyBytes += bytes
	c.bodyBytes += bytes
	cs.metrics.bytes.Set(float64(cs.bodyBytes))
	return true
}

// shrink lowers a connection's reserved memory to keep bytes, unless it is lower already, as after closing.
func (cs *connections) shrink(c *connection, keep int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	keep = min(keep, c.bodyBytes)
	cs.bodyBytes -= c.bodyBytes - keep
	c.bodyBytes = keep
	cs.metrics.bytes.Set(float64(cs.bodyBytes))
}

// isOpen reports whether a connection is still open.
func (cs *connections) isOpen(c *connection) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	_, open := cs.open[c]
	return open
}

// setBusy records whether a webhook is answering a request of the connection.
func (cs *connections) setBusy(c *connection, busy bool) {
	cs.mu.Lock()
	c.busy = busy
	cs.mu.Unlock()
}
