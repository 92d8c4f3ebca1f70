// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// link is a TCP proxy with a delay. The target of a connection is determined when it is opened.
type link struct {
	net.Listener
	// delay is added to each write, in both directions, in nanoseconds.
	delay atomic.Int64
	// target returns the address for a new connection.
	target func() string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newLink(t *testing.T, target func() string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed with the test
	if err != nil {
		t.Fatal(err)
	}
	l := &link{Listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go l.pass(from)
		}
	}()
	return l
}

func (l *link) slow(by time.Duration) { l.delay.Store(int64(by)) }

// reset closes the open connections. New ones are accepted.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

func (l *link) pass(from net.Conn) {
	l.mu.Lock()
	l.conns[from] = struct{}{}
	l.mu.Unlock()
	defer func() {
		_ = from.Close()
		l.mu.Lock()
		delete(l.conns, from)
		l.mu.Unlock()
	}()
	to, err := net.DialTimeout("tcp", l.target(), 5*time.Second) //nolint:noctx // has its own timeout
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	carry := func(dst, src net.Conn) {
		_, _ = io.Copy(delayedWriter{dst, l}, src)
		_, _ = dst.Close(), src.Close()
	}
	both.Go(func() { carry(to, from) })
	both.Go(func() { carry(from, to) })
	both.Wait()
}

// delayedWriter writes after the link's delay.
type delayedWriter struct {
	io.Writer
	link *link
}

func (w delayedWriter) Write(p []byte) (int, error) {
	if d := time.Duration(w.link.delay.Load()); d > 0 {
		time.Sleep(d)
	}
	return w.Writer.Write(p)
}
