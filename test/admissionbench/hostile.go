// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// What is promised under attack: docs/reference/security.md.
const (
	promisedP99    = 10 * time.Millisecond
	promisedGrowth = 64 << 20
)

// underAttack measures the latency of governed pods and the server's memory, first in quiet and then beside so many
// connections that are idle or slow, and fails when what is promised does not hold. The attackers come from the
// client's own address, which is the worst case: the server cannot tell them apart by it.
func underAttack(ctx context.Context, o options, certs certificates, s *server, bc *benchCase) error {
	ask := &patient{server: s, certs: certs, limit: o.limit, pods: &stream{server: s, bc: bc, step: 1}}
	defer ask.close()
	if _, err := ask.measure(o.warmup); err != nil {
		return err
	}
	quiet, err := ask.measure(o.latency)
	if err != nil {
		return err
	}
	a := &attack{address: s.address, path: s.path, config: certs.client}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var attackers sync.WaitGroup
	for i := range o.hostile {
		attackers.Go(func() { a.keep(ctx, i) })
	}
	select { // until all have come, and the first of them were turned away and have come again
	case <-time.After(15 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	attacked, err := ask.measure(o.latency)
	open := a.open.Load()
	stop()
	attackers.Wait()
	if err != nil {
		return err
	}
	fmt.Printf(
		"%d attackers, %d of them connected at the end, %d connections made in all; the client connected again %d times\n",
		o.hostile, open, a.made.Load(), ask.again,
	)
	fmt.Printf("p99_ms_quiet=%.2f p99_ms_attacked=%.2f rss_mib_quiet=%d rss_mib_attacked=%d\n",
		milliseconds(quiet.p99), milliseconds(attacked.p99), quiet.rss>>20, attacked.rss>>20)
	// The server keeps 512 connections at most. With fewer than half of what can be there, this was no attack.
	if least := int64(min(o.hostile, 512) / 2); open < least {
		err = fmt.Errorf(
			"only %d attackers were connected at the end, and at least %d have to be for the numbers to mean something", open,
			least,
		)
	}
	if attacked.p99 >= promisedP99 {
		err = errors.Join(
			err,
			fmt.Errorf("the slowest percent of pods waits for %s under attack, and %s are promised", attacked.p99, promisedP99),
		)
	}
	if grown := attacked.rss - quiet.rss; grown >= promisedGrowth {
		err = errors.Join(
			err, fmt.Errorf("memory grows by %d MiB under attack, and less than %d are promised", grown>>20, promisedGrowth>>20),
		)
	}
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// patient is a client that connects again when its connection is closed, as an API server does.
type patient struct {
	server *server
	certs  certificates
	limit  time.Duration
	pods   *stream
	conn   *client
	again  int
}

func (p *patient) close() {
	if p.conn != nil {
		p.conn.close()
	}
}

// measure asks n times, one after the other. A request that meets the end of its connection is made again, and takes as
// long as both.
func (p *patient) measure(n int) (r result, err error) {
	took := make([]time.Duration, n)
	for i := range took {
		request, start := p.pods.next(), time.Now()
		for tries := 0; ; tries++ {
			if err = p.ask(request); err == nil {
				break
			}
			p.close()
			p.conn = nil
			if p.again++; tries == 10 {
				return r, fmt.Errorf("the server cannot be reached: %w", err)
			}
		}
		took[i] = time.Since(start)
		if i%100 == 0 {
			stat, err := p.server.stat()
			if err != nil {
				return r, err
			}
			r.rss = max(r.rss, stat.ResidentMemory())
		}
	}
	slices.Sort(took)
	r.p50, r.p99 = took[len(took)/2], took[len(took)*99/100]
	return r, nil
}

func (p *patient) ask(request []byte) (err error) {
	if p.conn == nil {
		if p.conn, err = dial(p.server, p.certs, p.limit); err != nil {
			p.conn = nil
			return err
		}
	}
	return p.conn.ask(request)
}

// attack is a number of connections that are kept open and do next to nothing.
type attack struct {
	address, path string
	config        *tls.Config
	open, made    atomic.Int64
}

// keep keeps one connection open, and opens another a second after it was closed.
func (a *attack) keep(ctx context.Context, i int) {
	for ctx.Err() == nil {
		_ = a.once(ctx, i) // being turned away is what an attacker expects
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// once is one connection, until it is closed: silent, silent after the handshake, or with a body of 2 MiB that comes a
// byte at a time.
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
	encrypted := tls.Client(conn, withName(a.config, a.address))
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

func withName(config *tls.Config, address string) *tls.Config {
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address)
	return config
}
