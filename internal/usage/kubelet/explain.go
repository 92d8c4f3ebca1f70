// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/memfit/memfit/internal/usage"
)

// attempt describes one request, for its error message.
type attempt struct {
	node, host, path string
}

// refused returns the error for a response other than 200, with what to do.
func (a attempt) refused(resp *http.Response) error {
	text := strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // partial if it breaks off
	if said := usage.FirstLine(string(body)); said != "" && said != http.StatusText(resp.StatusCode) {
		text += ": " + said
	}
	subresource := "nodes/stats"
	if strings.HasPrefix(a.path, "/metrics") {
		subresource = "nodes/metrics"
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		text += ". The kubelet does not accept memfit's token: it needs authentication.webhook.enabled: true in its " +
			"configuration"
	case http.StatusForbidden:
		text += ". Grant memfit's service account `get` on " + subresource +
			" (a ClusterRole; never nodes/proxy, which allows commands in any pod)"
	case http.StatusNotFound:
		text += ". Check the kubelet's port in status.daemonEndpoints of its Node"
	case http.StatusInternalServerError:
		text += ". The kubelet itself has trouble reading its cgroups or its container runtime; see its log"
	}
	return a.wrap(errors.New(text))
}

// explain adds what to do to an error.
func (a attempt) explain(err error) error {
	err = usage.Cause(err)
	if advice := a.advice(err); advice != "" {
		return a.wrap(fmt.Errorf("%w. %s", err, advice))
	}
	return a.wrap(err)
}

func (a attempt) advice(err error) string {
	const insecure = "or, where no other server can answer at node addresses, --kubelet-insecure-skip-verify"
	switch {
	case is[x509.UnknownAuthorityError](err):
		return "The kubelet's serving certificate is not signed by the CA memfit trusts: have the cluster sign it " +
			"(serverTLSBootstrap: true, approve its CSR), " +
			"name its CA with --kubelet-ca-file, " + insecure
	case is[x509.HostnameError](err):
		return "The kubelet's serving certificate does not name the address memfit uses: renew it with that address, " +
			insecure
	case is[x509.CertificateInvalidError](err):
		return "The kubelet's serving certificate is not valid now: renew it, and compare the clocks"
	case is[tls.RecordHeaderError](err), errors.Is(err, http.ErrSchemeMismatch):
		return "The server there does not use TLS: check the kubelet's port"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "No server listens there: check that the kubelet runs, and its port (status.daemonEndpoints of the Node)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "There is no route to the node from memfit's pod"
	case is[*net.DNSError](err):
		return "The node's address is a name that memfit cannot resolve: its Node needs an InternalIP"
	case errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		return "No answer in time: a NetworkPolicy or firewall may drop connections from memfit to " + a.host +
			", or the node is overloaded"
	}
	return ""
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// wrap adds the node's name once.
func (a attempt) wrap(err error) error {
	path, _, _ := strings.Cut(a.path, "?")
	return fmt.Errorf("kubelet of node %s (%s%s): %w", a.node, a.host, path, err)
}
