// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
)

// result is what one server did with one case over one protocol.
type result struct {
	server, name, protocol string
	p50, p99               time.Duration
	perSecond              float64
	// cpuPerRequest is the server's processor time, clientPerRequest that of the client and all that is in its process.
	cpuPerRequest, clientPerRequest time.Duration
	// clientBusy is the share of one core that the client took: near 1, the client is what was measured.
	clientBusy float64
	rss        int // bytes
}

// asker asks one server, one request at a time. Its answers are read to their end and thrown away.
type asker interface {
	ask(request []byte) error
	close()
}

// client is one kept-alive HTTP/1.1 connection. Requests are written as they were prepared, so that the client costs
// little.
type client struct {
	conn   *tls.Conn
	reader *bufio.Reader
}

func dial(s *server, certs certificates, limit time.Duration) (*client, error) {
	conn, err := tls.Dial("tcp", s.address, certs.client)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, reader: bufio.NewReaderSize(conn, 32<<10)}, conn.SetDeadline(time.Now().Add(limit))
}

func (c *client) close() { _ = c.conn.Close() }

// do returns an answer as a whole.
func (c *client) do(request []byte) (*http.Response, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.reader, nil)
}

func (c *client) ask(request []byte) error {
	resp, err := c.do(request)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %q", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// multiplexed is HTTP/2 as the API server's own client speaks it: one connection for all requests at once.
type multiplexed struct {
	transport *http.Transport
	url       string
}

func (s *server) multiplexed(certs certificates) *multiplexed {
	config := certs.client.Clone()
	config.NextProtos = nil // the transport fills it in
	return &multiplexed{
		url:       "https://" + s.address + s.path + "?timeout=2s",
		transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true},
	}
}

func (m *multiplexed) close() { m.transport.CloseIdleConnections() }

// ask sends the body of a prepared request.
func (m *multiplexed) ask(request []byte) error {
	_, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	req, err := http.NewRequest(http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := m.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		return fmt.Errorf("%s %s, want HTTP/2 200", resp.Proto, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// stream makes requests to s of a case's pods, one connection's share of them: every step-th from the first on. Each is
// good until the next.
type stream struct {
	server      *server
	bc          *benchCase
	first, step int
	made        int
	request     []byte
}

func (t *stream) next() []byte {
	pod := t.bc.order(t.first + t.made*t.step)
	t.made++
	t.request = fmt.Appendf(
		t.request[:0],
		"POST %s?timeout=2s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		t.server.path, t.server.address, len(pod.text),
	)
	t.request = pod.fill(t.request, t.bc.made.Add(1))
	return t.request
}

// check makes sure that the server does the work that is measured: governed pods get a patch, the others none.
func (s *server) check(o options, certs certificates, cases []*benchCase) error {
	for _, bc := range cases {
		c, err := dial(s, certs, o.limit)
		if err != nil {
			return err
		}
		defer c.close()
		pods := &stream{server: s, bc: bc, step: 1}
		for i := range 100 {
			resp, err := c.do(pods.next())
			if err != nil {
				return err
			}
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(resp.Body).Decode(&review); err != nil {
				return err
			}
			r := review.Response
			if r == nil || !r.Allowed {
				return fmt.Errorf("a pod was not allowed: %+v", r)
			}
			if want := s.patches && bc.name != ungoverned; len(r.Patch) > 0 != want {
				return fmt.Errorf("%s pod: patch is %q, want one: %t (warnings %q)", bc.name, r.Patch, want, r.Warnings)
			}
			if i == 0 && bc.name == governed && len(r.Patch) > 0 {
				fmt.Printf("%s answers a governed pod with %s\n", s.name, r.Patch)
			}
		}
	}
	return nil
}

// The protocols. The first is what memfit's manager offers; the API server would speak the second with VPA's.
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// series are the rounds of one server, case and protocol.
type series struct {
	server         *server
	bc             *benchCase
	protocol       string
	warmup, serial int
	flood          int
	// sent is how far the series is in its case's order: a round goes on where the one before ended.
	sent   int
	rounds []result
}

// measure goes round: everything once per round, so that whatever else this machine does hits all alike.
func measure(
	ctx context.Context, o options, certs certificates, servers []*server, cases []*benchCase,
) ([]*series, error) {
	var all []*series
	for _, bc := range cases {
		for _, protocol := range []string{http1, http2} {
			if protocol == http2 && bc.replicas == 1 {
				continue
			}
			for _, s := range servers {
				of := &series{
					server: s, bc: bc, protocol: protocol, warmup: o.warmup, serial: o.latency, flood: o.throughput,
				}
				if protocol == http2 { // a side line, from which a ratio is all that is wanted
					of.warmup, of.serial, of.flood = o.warmup/4, o.latency/4, o.throughput/3
				}
				all = append(all, of)
			}
		}
	}
	for round := range o.rounds {
		for _, of := range all {
			if round > 0 {
				of.warmup = min(of.warmup, o.warmup/10)
			}
			r, err := of.round(ctx, o, certs)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s: %w", of.server.name, of.bc.name, of.protocol, err)
			}
			of.rounds = append(of.rounds, r)
		}
	}
	return all, nil
}

func (of *series) dial(certs certificates, limit time.Duration) (asker, error) {
	if of.protocol == http2 {
		return of.server.multiplexed(certs), nil
	}
	return dial(of.server, certs, limit)
}

func (of *series) round(ctx context.Context, o options, certs certificates) (result, error) {
	c, err := of.dial(certs, o.limit)
	if err != nil {
		return result{}, err
	}
	defer c.close()
	pods := &stream{server: of.server, bc: of.bc, first: of.sent, step: 1}
	for range of.warmup {
		if err := c.ask(pods.next()); err != nil {
			return result{}, err
		}
	}
	took := make([]time.Duration, of.serial)
	for i := range took {
		request := pods.next()
		start := time.Now()
		if err := c.ask(request); err != nil {
			return result{}, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	r := result{
		server: of.server.name, name: of.bc.name, protocol: of.protocol, p50: took[len(took)/2], p99: took[len(took)*99/100],
	}
	of.sent += pods.made
	err = of.load(ctx, o, certs, &r)
	of.sent += of.flood + o.connections
	return r, err
}

// load sends a fixed number of requests over all connections, each waiting for its answer, and notes what that took of
// whom.
func (of *series) load(ctx context.Context, o options, certs certificates, r *result) error {
	askers, streams := make([]asker, o.connections), make([]*stream, o.connections)
	for i := range askers {
		streams[i] = &stream{server: of.server, bc: of.bc, first: of.sent + i, step: len(askers)}
		if i > 0 && of.protocol == http2 {
			askers[i] = askers[0]
			continue
		}
		c, err := of.dial(certs, o.limit)
		if err != nil {
			return err
		}
		defer c.close()
		if err := c.ask(streams[i].next()); err != nil { // the handshake is not part of it
			return err
		}
		askers[i] = c
	}
	before, err := of.server.stat()
	if err != nil {
		return err
	}
	own, start := ownCPU(), time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for first, c := range askers {
		group.Go(func() error {
			for i := first; i < of.flood && ctx.Err() == nil; i += len(askers) {
				if err := c.ask(streams[first].next()); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	elapsed, ownAfter := time.Since(start), ownCPU()
	after, err := of.server.stat()
	if err != nil {
		return err
	}
	r.perSecond = float64(of.flood) / elapsed.Seconds()
	cpu := time.Duration((after.CPUTime() - before.CPUTime()) * float64(time.Second))
	r.cpuPerRequest, r.clientPerRequest = cpu/time.Duration(of.flood), (ownAfter-own)/time.Duration(of.flood)
	r.clientBusy = float64(ownAfter-own) / float64(elapsed)
	r.rss = after.ResidentMemory()
	return nil
}

// ownCPU is the processor time of this process: the client, and a stand-in for an API server that has nothing to do
// meanwhile.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
