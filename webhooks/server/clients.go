// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// clients are those whose certificate is asked for: signed by an authority in the file and, if any names are given,
// with one of them.
type clients struct {
	file  string
	names []string
	clock clock.PassiveClock

	mu    sync.Mutex
	tried time.Time
	pool  *x509.CertPool
}

// readEvery is how often the file is read: an authority that is added may wait as long.
const readEvery = 10 * time.Second

// authorities are those of the file. A file that cannot be read any more leaves those that were known.
func (c *clients) authorities() (*x509.CertPool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if c.pool != nil && now.Sub(c.tried) < readEvery {
		return c.pool, nil
	}
	c.tried = now
	pool, err := readAuthorities(c.file)
	switch {
	case err == nil:
		c.pool = pool
	case c.pool == nil:
		return nil, err
	default:
		logf.Log.WithName("webhook-server").Error(err, "Kept the client authorities that were read before", "file", c.file)
	}
	return c.pool, nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("reading --client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading --client-ca: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// require makes a TLS configuration that serves these clients only.
func (c *clients) require(config *tls.Config) {
	base := config.Clone()
	base.ClientAuth = tls.RequireAndVerifyClientCert
	base.VerifyConnection = c.verify
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.authorities()
		if err != nil {
			return nil, err
		}
		with := base.Clone()
		with.ClientCAs = pool
		return with, nil
	}
}

// verify looks at the name of a certificate that an authority has signed.
func (c *clients) verify(state tls.ConnectionState) error {
	if len(c.names) == 0 {
		return nil
	}
	if len(state.PeerCertificates) > 0 && slices.Contains(c.names, state.PeerCertificates[0].Subject.CommonName) {
		return nil
	}
	return fmt.Errorf("the client's certificate has none of the names %q", c.names)
}
