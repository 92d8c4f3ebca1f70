// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/time/rate"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// errorLog counts the connection errors of net/http and logs them at verbosity 1, because any client can cause them. A
// few missing client certificates are logged at verbosity 0: if the client is the API server, no pod gets its settings.
type errorLog struct {
	context.Context

	metrics *Metrics
	limiter *rate.Limiter
}

// withoutCertificate has the errors of crypto/tls and [clients.verify] about a missing or wrong client certificate.
var withoutCertificate = []string{
	"client didn't provide a certificate", "failed to verify certificate",
	"the client's certificate has none of the names",
}

func (c *errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	log := logf.FromContext(c).WithName("webhook-server")
	switch {
	case !strings.Contains(text, "TLS handshake error"):
	case slices.ContainsFunc(withoutCertificate, func(why string) bool { return strings.Contains(text, why) }):
		c.metrics.refused.WithLabelValues(reasonCertificate).Inc()
		if c.limiter.Allow() {
			log.Info("Refused a client without the certificate that --client-ca requires; if it is the API server, pods are "+
				"admitted without their settings", "why", text)
			return len(line), nil
		}
	default:
		c.metrics.refused.WithLabelValues(reasonHandshake).Inc()
	}
	log.V(1).Info("A connection ended", "why", text)
	return len(line), nil
}
