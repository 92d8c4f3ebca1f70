// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memfit/memfit/internal/memory"
)

// figures are the measurements of one server, case and protocol in one round.
type figures struct {
	p50, p99  time.Duration
	perSecond float64
	// cpuPerRequest is the server's processor time, clientPerRequest that of the client's whole process.
	cpuPerRequest, clientPerRequest time.Duration
	// clientBusy is the share of one core that the client used: near 1, the client was the bottleneck.
	clientBusy float64
	rss        memory.Bytes
}

// The protocols. memfit's manager offers only HTTP/1.1; an API server uses HTTP/2 with VPA's webhook.
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// connections is the number of parallel connections when throughput is measured.
const connections = 8

// client returns a client for one protocol that keeps its connections open.
func (s *server) client(protocol string) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(protocol == http1)
	protocols.SetHTTP2(protocol == http2)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: insecure(), Protocols: protocols, MaxIdleConnsPerHost: connections, DisableCompression: true,
	}}
}

// insecure returns a configuration that accepts any certificate.
func insecure() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // this machine's loopback
}

// ask sends a review and returns the body of the answer.
func (s *server) ask(ctx context.Context, c *http.Client, review []byte) ([]byte, error) {
	url := "https://" + s.address + s.path + "?timeout=2s"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server returned %q", resp.Status)
	}
	return text, err
}

// series are the rounds of one server, case and protocol.
type series struct {
	*server
	of       *benchCase
	protocol string
	requests int
	results  []figures
}

// rounds measures everything once per round, so that the machine's other load affects all equally.
func (o options) rounds(ctx context.Context, servers []*server, cases []*benchCase) (all []*series, err error) {
	for _, bc := range cases {
		for _, s := range servers {
			for _, protocol := range s.protocols {
				requests := o.requests
				if protocol == http2 { // only for a ratio, which needs less precision
					requests /= 3
				}
				all = append(all, &series{server: s, of: bc, protocol: protocol, requests: requests})
			}
		}
	}
	for range o.repeat {
		for _, s := range all {
			r, err := s.round(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s: %w", s.name, s.of.name, s.protocol, err)
			}
			s.results = append(s.results, r)
		}
	}
	return all, nil
}

// round warms the server up, sends reviews one after the other, and then over all connections.
func (s *series) round(ctx context.Context) (r figures, err error) {
	c := s.client(s.protocol)
	defer c.CloseIdleConnections()
	if err := s.flood(ctx, c, s.requests/4); err != nil { // which makes the connections, too
		return r, err
	}
	took, err := s.serial(ctx, c, s.requests/3)
	if err != nil {
		return r, err
	}
	r.p50, r.p99 = took[len(took)/2], took[len(took)*99/100]
	before, err := s.usage()
	if err != nil {
		return r, err
	}
	own, start := ownCPU(), time.Now()
	if err := s.flood(ctx, c, s.requests); err != nil {
		return r, err
	}
	elapsed, client := time.Since(start), ownCPU()-own
	after, err := s.usage()
	r.perSecond, r.rss = float64(s.requests)/elapsed.Seconds(), after.rss
	r.cpuPerRequest = (after.cpu - before.cpu) / time.Duration(s.requests)
	r.clientPerRequest, r.clientBusy = client/time.Duration(s.requests), float64(client)/float64(elapsed)
	return r, err
}

// serial sends n reviews, one after the other, and returns their sorted times.
func (s *series) serial(ctx context.Context, c *http.Client, n int) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		review, start := s.of.next(), time.Now()
		if _, err := s.ask(ctx, c, review); err != nil {
			return nil, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took, nil
}

// flood sends n reviews over all connections, each of which waits for its answers.
func (s *series) flood(ctx context.Context, c *http.Client, n int) error {
	var sent atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range connections {
		group.Go(func() error {
			for sent.Add(1) <= int64(n) {
				if _, err := s.ask(ctx, c, s.of.next()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// ownCPU returns the processor time of this process: the client, and proxies that are idle meanwhile.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
