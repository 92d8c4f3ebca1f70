// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// The promises for an attack, as in docs/reference/security.md.
const (
	maxP99    = 10 * time.Millisecond
	maxGrowth = 64 * memory.MiB
)

// underAttack measures the latency of governed pods and the server's memory, without and with o.hostile idle or slow
// connections, and fails when a promise is broken. The attackers have the client's own address, which is the worst
// case: the server cannot distinguish them by address.
func (o options) underAttack(ctx context.Context, s *server, bc *benchCase) error {
	api := &reconnectingClient{series: series{server: s, of: bc}, client: s.client(http1)}
	if _, _, err := api.measure(ctx, o.requests); err != nil { // warms up
		return err
	}
	quiet, rssQuiet, err := api.measure(ctx, o.requests)
	if err != nil {
		return err
	}
	a := &attack{address: s.address, path: s.path}
	under, stop := context.WithCancel(ctx)
	defer stop()
	var attackers sync.WaitGroup
	for i := range o.hostile {
		attackers.Go(func() { a.keep(under, i) })
	}
	select { // until all have connected, and the first were disconnected and have connected again
	case <-time.After(15 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	attacked, rss, err := api.measure(ctx, o.requests)
	open := a.open.Load()
	stop()
	attackers.Wait()
	if err != nil {
		return err
	}
	fmt.Printf(
		"%d attackers, %d of them connected at the end, %d connections made in all; %d retries of the client\n",
		o.hostile, open, a.made.Load(), api.retries,
	)
	fmt.Printf("p99_ms_quiet=%.2f p99_ms_attacked=%.2f rss_mib_quiet=%d rss_mib_attacked=%d\n",
		quiet.Seconds()*1e3, attacked.Seconds()*1e3, rssQuiet/memory.MiB, rss/memory.MiB)
	// The server keeps 512 connections at most. With fewer than half of the possible connections, this was no attack.
	if least := int64(min(o.hostile, 512) / 2); open < least {
		err = fmt.Errorf(
			"only %d attackers were connected at the end; the numbers need at least %d to be valid", open,
			least,
		)
	}
	if attacked >= maxP99 {
		err = errors.Join(
			err, fmt.Errorf("the p99 latency of pods is %s under attack, want less than %s", attacked, maxP99),
		)
	}
	if grown := rss - rssQuiet; grown >= maxGrowth {
		err = errors.Join(
			err, fmt.Errorf("memory grows by %s under attack, want less than %s", grown, maxGrowth),
		)
	}
	return err
}

// reconnectingClient is a client that connects again when its connection is closed, as an API server does.
type reconnectingClient struct {
	series
	client  *http.Client
	retries int
}

// measure sends n reviews, one after the other, and returns the 99th percentile of their times, and the server's
// highest RSS. A request whose connection is closed is retried; its time includes all tries.
func (p *reconnectingClient) measure(ctx context.Context, n int) (p99 time.Duration, rss memory.Bytes, err error) {
	took := make([]time.Duration, n)
	for i := range took {
		review, start := p.of.next(), time.Now()
		for tries := 0; ; tries++ {
			if _, err = p.ask(ctx, p.client, review); err == nil {
				break
			}
			if p.retries++; tries == 10 {
				return 0, 0, fmt.Errorf("the server is unreachable: %w", err)
			}
		}
		took[i] = time.Since(start)
		if i%100 == 0 {
			t, err := p.usage()
			if err != nil {
				return 0, 0, err
			}
			rss = max(rss, t.rss)
		}
	}
	slices.Sort(took)
	return took[n*99/100], rss, nil
}

// attack counts connections that are kept open and send almost nothing.
type attack struct {
	address, path string
	open, made    atomic.Int64
}

// keep keeps one connection open, and opens another a second after it was closed.
func (a *attack) keep(ctx context.Context, i int) {
	for ctx.Err() == nil {
		_ = a.once(ctx, i) // the server may close the connection
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// once keeps one connection until it is closed: silent, silent after the handshake, or with a body of 2 MiB of which it
// sends a byte per second.
func (a *attack) once(ctx context.Context, i int) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", a.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	a.made.Add(1)
	a.open.Add(1)
	defer a.open.Add(-1)
	if i%3 == 0 {
		_, err = io.Copy(io.Discard, conn)
		return err
	}
	encrypted := tls.Client(conn, insecure())
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return err
	}
	if i%3 == 1 {
		_, err = io.Copy(io.Discard, encrypted)
		return err
	}
	_, err = fmt.Fprintf(
		encrypted, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", a.path,
		2<<20,
	)
	for err == nil {
		_, err = encrypted.Write([]byte("x"))
		time.Sleep(time.Second)
	}
	return err
}
