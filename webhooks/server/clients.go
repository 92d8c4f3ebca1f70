// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// clients verifies that client certificates are signed by one of the authorities and have one of the common names.
type clients struct {
	authorities dynamiccertificates.CAContentProvider
	names       []string // empty: all names are accepted
}

// newClients reads the authorities from a file, and rereads the file when it changes, until ctx ends. If the file
// becomes unreadable, the previous authorities remain valid.
func newClients(ctx context.Context, file string, names []string) (*clients, error) {
	authorities, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading --client-ca: %w", err)
	}
	go authorities.Run(ctx, 1)
	return &clients{authorities, names}, nil
}

// require changes a TLS configuration so that it accepts these clients only.
func (c *clients) require(config *tls.Config) {
	base := config.Clone()
	base.ClientAuth = tls.RequireAndVerifyClientCert
	base.VerifyConnection = c.verify
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		known, ok := c.authorities.VerifyOptions()
		if !ok { // Without roots, crypto/tls would use the system's.
			return nil, errors.New("--client-ca has no valid authority")
		}
		with := base.Clone()
		with.ClientCAs = known.Roots
		return with, nil
	}
}

// verify checks the common name of a client certificate whose signature is valid.
func (c *clients) verify(state tls.ConnectionState) error {
	if len(c.names) == 0 {
		return nil
	}
	if len(state.PeerCertificates) > 0 && slices.Contains(c.names, state.PeerCertificates[0].Subject.CommonName) {
		return nil
	}
	return fmt.Errorf("the client's certificate has none of the names %q", c.names)
}
