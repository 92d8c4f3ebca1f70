// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"net/http"
	"sync"
	"time"
)

// ServerClock returns the earlier of memfit's time and the API server's time in responses, so that no record expires
// too early if one of the clocks is ahead. Before the first response it returns the zero time: nothing expires.
type ServerClock struct {
	Local func() time.Time

	mu     sync.Mutex
	server time.Time // API server's time in the last response
	local  time.Time // memfit's time of the last response
}

// Client returns a copy of an HTTP client that sets the clock with each response.
func (c *ServerClock) Client(of *http.Client) *http.Client {
	set := *of
	if set.Transport == nil {
		set.Transport = http.DefaultTransport
	}
	set.Transport = transport{set.Transport, c}
	return &set
}

type transport struct {
	http.RoundTripper
	clock *ServerClock
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		if at, invalid := http.ParseTime(response.Header.Get("Date")); invalid == nil {
			t.clock.mu.Lock()
			t.clock.server, t.clock.local = at, t.clock.Local()
			t.clock.mu.Unlock()
		}
	}
	return response, err //nolint:wrapcheck // it is the caller's transport
}

// Now returns the earlier time; zero: the API server's time is unknown.
func (c *ServerClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.IsZero() {
		return time.Time{}
	}
	now := c.Local()
	if at := c.server.Add(now.Sub(c.local)); at.Before(now) {
		return at
	}
	return now
}

// Since returns the time since t.
func (c *ServerClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
