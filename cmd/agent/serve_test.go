// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/memfit/memfit/internal/liveness"
)

type inspection struct{}

func (inspection) String() string { return "an inspection" }

func TestHealthz(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		tick       time.Duration // ago
		inspection time.Duration // in progress for; 0: none is
		want       string
	}{
		"well":                     {want: "ok"},
		"an inspection goes on":    {inspection: 30 * time.Second, want: "ok"},
		"an inspection is blocked": {inspection: time.Hour, want: "a worker has been processing an inspection since"},
		"readings are blocked":     {tick: time.Hour, want: "the agent has not read memory usage for 1h0m0s"},
	} {
		clock := clocktesting.NewFakePassiveClock(now.Add(-tc.inspection))
		watchdog := liveness.NewWatchdog(clock)
		if tc.inspection > 0 {
			defer watchdog.Begin(inspection{})()
		}
		clock.SetTime(now)
		var lastTick atomic.Int64
		lastTick.Store(now.Add(-tc.tick).UnixNano())
		w := httptest.NewRecorder()
		healthz(&lastTick, watchdog)(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if (w.Code == http.StatusOK) != (tc.want == "ok") || !strings.HasPrefix(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %q, want %q", name, w.Code, w.Body, tc.want)
		}
	}
}
