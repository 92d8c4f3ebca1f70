// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
)

// result is what one server did with one case.
type result struct {
	server, name  string
	p50, p99      time.Duration
	perSecond     float64
	cpuPerRequest time.Duration
	rss           int64
}

// client is one kept-alive connection. Requests are written as they were prepared, so that the client costs little.
type client struct {
	conn   *tls.Conn
	reader *bufio.Reader
}

func dial(s *server, certs certificates) (*client, error) {
	conn, err := tls.Dial("tcp", s.address, certs.client)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, reader: bufio.NewReaderSize(conn, 32<<10)}, nil
}

// requestTimeout is far above every answer there was; it ends a run that hangs.
const requestTimeout = 10 * time.Second

func (c *client) do(request []byte) (*http.Response, error) {
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.reader, nil)
}

// answer reads a response to its end and throws it away.
func (c *client) answer(request []byte) error {
	resp, err := c.do(request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// requests are the bodies of a case as they go over the wire to s.
func (s *server) requests(c benchCase) [][]byte {
	out := make([][]byte, len(c.bodies))
	for i, body := range c.bodies {
		head := fmt.Sprintf("POST %s?timeout=2s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", s.path, s.address, len(body))
		out[i] = append([]byte(head), body...)
	}
	return out
}

// check makes sure that the server does the work that is measured: governed pods get a patch, the others none.
func (s *server) check(certs certificates, cases []benchCase) error {
	for _, bc := range cases {
		c, err := dial(s, certs)
		if err != nil {
			return err
		}
		defer c.conn.Close()
		for i, request := range s.requests(bc) {
			if i == 100 {
				break
			}
			resp, err := c.do(request)
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
			if want := s.patches && bc.name == "governed"; len(r.Patch) > 0 != want {
				return fmt.Errorf("%s pod: patch is %q, want one: %t (warnings %q)", bc.name, r.Patch, want, r.Warnings)
			}
			if i == 0 && len(r.Patch) > 0 {
				fmt.Printf("%s answers a governed pod with %s\n", s.name, r.Patch)
			}
		}
	}
	return nil
}

// measure goes round: every server and case once per round, so that whatever else this machine does hits them alike.
func measure(ctx context.Context, o options, certs certificates, servers []*server, cases []benchCase) ([]result, error) {
	rounds := map[[2]string][]result{}
	for round := range o.rounds {
		for _, bc := range cases {
			for _, s := range servers {
				warmup := o.warmup
				if round > 0 {
					warmup /= 10
				}
				r, err := s.round(ctx, o, certs, bc, warmup)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", s.name, bc.name, err)
				}
				key := [2]string{s.name, bc.name}
				rounds[key] = append(rounds[key], r)
			}
		}
	}
	var results []result
	for _, s := range servers {
		for _, bc := range cases {
			results = append(results, medians(rounds[[2]string{s.name, bc.name}]))
		}
	}
	return results, nil
}

func (s *server) round(ctx context.Context, o options, certs certificates, bc benchCase, warmup int) (result, error) {
	requests := s.requests(bc)
	c, err := dial(s, certs)
	if err != nil {
		return result{}, err
	}
	defer c.conn.Close()
	for i := range warmup {
		if err := c.answer(requests[i%len(requests)]); err != nil {
			return result{}, err
		}
	}
	took := make([]time.Duration, o.latency)
	for i := range took {
		start := time.Now()
		if err := c.answer(requests[i%len(requests)]); err != nil {
			return result{}, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	r := result{server: s.name, name: bc.name, p50: took[len(took)/2], p99: took[len(took)*99/100]}
	before, err := s.cpu()
	if err != nil {
		return result{}, err
	}
	elapsed, err := s.flood(ctx, o, certs, requests)
	if err != nil {
		return result{}, err
	}
	after, err := s.cpu()
	if err != nil {
		return result{}, err
	}
	r.perSecond = float64(o.throughput) / elapsed.Seconds()
	r.cpuPerRequest = (after - before) / time.Duration(o.throughput)
	r.rss, err = s.rss()
	return r, err
}

// flood sends a fixed number of requests over all connections, each waiting for its answer, and returns how long that took.
func (s *server) flood(ctx context.Context, o options, certs certificates, requests [][]byte) (time.Duration, error) {
	clients := make([]*client, o.connections)
	for i := range clients {
		c, err := dial(s, certs)
		if err != nil {
			return 0, err
		}
		defer c.conn.Close()
		clients[i] = c
	}
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for first, c := range clients {
		group.Go(func() error {
			for i := first; i < o.throughput && ctx.Err() == nil; i += len(clients) {
				if err := c.answer(requests[i%len(requests)]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return time.Since(start), err
}
