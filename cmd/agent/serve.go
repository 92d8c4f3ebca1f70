// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/memfit/memfit/internal/liveness"
)

// stuckAfter is the time after a tick when the liveness check begins to fail. A busy node delays a tick by seconds.
const stuckAfter = 30 * time.Second

// serve serves /healthz and /metrics until ctx ends. They return only counts, so they need no authentication.
func serve(
	ctx context.Context, address string, lastTick *atomic.Int64, watchdog *liveness.Watchdog, log *slog.Logger,
) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /healthz", healthz(lastTick, watchdog))
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 16 << 10,
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", address, err)
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("Could not serve metrics", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// healthz returns the handler of the liveness check, which fails when readings or inspections hang.
func healthz(lastTick *atomic.Int64, watchdog *liveness.Watchdog) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if since := time.Since(time.Unix(0, lastTick.Load())); since > stuckAfter {
			text := fmt.Sprintf("the agent has not read memory usage for %s", since.Round(time.Second))
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		if err := watchdog.Check(r); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}
