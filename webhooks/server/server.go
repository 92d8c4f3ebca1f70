// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// maxConnections limits open connections; an idle one takes about 40 KB. An API server keeps up to 25 idle
	// connections to each webhook and has at most a few hundred requests in flight.
	maxConnections = 512
	// requestTime limits reading a request and, separately, writing its response. API servers time out after 2 s or 5 s.
	// It is longer because they also open connections in advance, which may wait for their first request.
	requestTime = 10 * time.Second
	// idleTime exceeds the 90 s of API servers: if the server closed an idle connection first, a request might fail.
	idleTime = 2 * time.Minute
	// maxHeader limits request headers, in bytes; an API server sends about 300.
	maxHeader = 16 << 10
	// shutdownTime is how long requests may still take on shutdown, within the pod's grace period of 30 s.
	shutdownTime = 20 * time.Second
)

// Options configures a server.
type Options struct {
	Host    string
	Port    int
	CertDir string // contains tls.crt and tls.key, which are reloaded when they change
	// ClientCA is a PEM file with CA certificates; "": clients need no certificate.
	ClientCA    string
	ClientNames []string // accepted common names of client certificates; empty: all
	TLSOpts     []func(*tls.Config)
	Metrics     *Metrics
}

// Server is a [webhook.Server] with limits on connections, bytes and time.
type Server struct {
	webhook.Server // registers webhooks and their metrics

	options     Options
	mux         *http.ServeMux
	connections *connections
	listening   atomic.Bool
}

// New returns a server; [Server.Start] listens.
func New(o Options) *Server {
	s := &Server{options: o, mux: http.NewServeMux(), connections: newConnections(maxConnections, maxBodies, o.Metrics)}
	s.Server = webhook.NewServer(webhook.Options{Host: o.Host, Port: o.Port, CertDir: o.CertDir, WebhookMux: s.mux})
	return s
}

// Register serves a webhook at a path.
func (s *Server) Register(path string, hook http.Handler) {
	s.Server.Register(path, s.connections.handler(hook))
}

// WebhookMux returns the mux with the webhooks by path.
func (s *Server) WebhookMux() *http.ServeMux { return s.mux }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	config, err := s.tls(ctx)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	tcp, err := listen.Listen(ctx, "tcp", net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port)))
	if err != nil {
		return fmt.Errorf("listening for the API server: %w", err)
	}
	logf.FromContext(ctx).WithName("webhook-server").Info(
		"Serving webhooks", "address", tcp.Addr().String(), "clientCA", s.options.ClientCA,
	)
	srv := s.http(ctx)
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		ended <- srv.Shutdown(limited)
	}()
	s.listening.Store(true)
	defer s.listening.Store(false)
	if err := srv.Serve(tls.NewListener(listener{tcp, s.connections}, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	return <-ended
}

// http returns the HTTP server with its limits on time and size.
func (s *Server) http(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:     s.mux,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, unwrap(conn))
		},
		ConnState:         s.connections.stateChanged,
		ReadHeaderTimeout: requestTime, // includes the handshake
		ReadTimeout:       requestTime,
		WriteTimeout:      requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog: log.New(&errorLog{
			Context: ctx, metrics: s.options.Metrics, limiter: rate.NewLimiter(rate.Every(time.Minute), 1),
		}, "", 0),
	}
}

type connectionKey struct{}

func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// tls returns the TLS configuration: TLS 1.3, or 1.2 for older clients.
func (s *Server) tls(ctx context.Context) (*tls.Config, error) {
	watcher, err := certwatcher.New(
		filepath.Join(s.options.CertDir, "tls.crt"), filepath.Join(s.options.CertDir, "tls.key"),
	)
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's certificate: %w", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			logf.FromContext(ctx).WithName("webhook-server").Error(err, "Stopped reloading the webhook's certificate")
		}
	}()
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: watcher.GetCertificate,
	}
	for _, change := range s.options.TLSOpts {
		change(config)
	}
	if s.options.ClientCA != "" {
		c, err := newClients(ctx, s.options.ClientCA, s.options.ClientNames)
		if err != nil {
			return nil, err
		}
		c.require(config)
	}
	return config, nil
}

// StartedChecker checks whether the server is listening. It opens no connection, because a server with a client CA
// would refuse it.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.listening.Load() {
			return errors.New("the webhook server is not ready yet")
		}
		return nil
	}
}
