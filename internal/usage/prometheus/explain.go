// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/memfit/memfit/internal/usage"
)

// explain adds what to do to the error of a query.
func (s *Source) explain(name, query string, err error) error {
	if refusal, ok := errors.AsType[*v1.Error](err); ok {
		return s.wrap(fmt.Errorf("%w%s", shorten(refusal), refused(refusal, name, query)))
	}
	cause := usage.Cause(err)
	if advice := unreachable(err); advice != "" {
		return s.wrap(fmt.Errorf("%w. %s", cause, advice))
	}
	return s.wrap(cause)
}

// shorten keeps the first line of the message, which may be a whole HTML page.
func shorten(e *v1.Error) error {
	short := *e
	short.Msg, short.Detail = usage.FirstLine(e.Msg), ""
	return &short
}

// refused returns what to do about an error that the server returned; "" if unknown.
func refused(e *v1.Error, name, query string) string {
	switch {
	case e.Type == v1.ErrBadData:
		return fmt.Sprintf(". The query %s is %s", name, usage.FirstLine(query))
	case e.Type == v1.ErrTimeout, e.Type == v1.ErrCanceled, strings.Contains(e.Msg, "503"), strings.Contains(e.Msg, "504"):
		return ". Prometheus is slow or overloaded: give it more time, or memfit less history"
	case strings.Contains(e.Msg, "401"), strings.Contains(e.Msg, "403"):
		return ". Prometheus refuses the credentials: check the bearer token file, and the tenant header if there are " +
			"tenants"
	case strings.Contains(e.Msg, "404"):
		return ". Check the path: Mimir needs /prometheus at its end, VictoriaMetrics in cluster mode /select/0/prometheus"
	case e.Type == v1.ErrBadResponse:
		return ". The server is not a Prometheus HTTP API: check the URL"
	}
	return ""
}

// unreachable returns what to do about an error without a response of the server; "" if unknown.
func unreachable(err error) string {
	switch {
	case usage.Is[x509.UnknownAuthorityError](err):
		return "Its certificate is not signed by an authority memfit trusts: name the CA file"
	case usage.Is[x509.HostnameError](err):
		return "Its certificate does not name the host in the URL"
	case usage.Is[*net.DNSError](err):
		return "The host of the URL cannot be resolved"
	case usage.Is[*http.MaxBytesError](err):
		return "Request a shorter history or longer steps"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "No server is listening: check that Prometheus runs, and the port"
	case errors.Is(err, context.Canceled):
		return ""
	case usage.TimedOut(err):
		return "No answer in time: a NetworkPolicy or firewall may drop connections, or Prometheus is overloaded"
	}
	return ""
}

// wrap adds the server's name to an error.
func (s *Source) wrap(err error) error { return fmt.Errorf("prometheus at %s: %w", s.host, err) }
