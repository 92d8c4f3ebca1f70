// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
)

// Options are the address of Prometheus, and its names.
type Options struct {
	// URL is the base, with its path prefix if any: "http://prometheus.monitoring:9090",
	// "https://mimir.example/prometheus", "http://vmselect:8481/select/0/prometheus". Required. A user and password in it
	// are sent as basic authentication.
	URL string
	// BearerTokenFile is read again every minute.
	BearerTokenFile string
	// CAFile verifies an https URL; default: the system's authorities.
	CAFile string
	// Headers are sent with each request, for example X-Scope-OrgID for Mimir's tenants.
	Headers map[string]string
	// Timeout bounds one query. Default 30s. It is sent to Prometheus, which then cancels late queries.
	Timeout time.Duration
	// MaxBytes bounds a response. Default 64Mi; decoding needs about as much again.
	MaxBytes memory.Bytes
	// Queries override the PromQL.
	Queries Queries
}

// Source reads usage from Prometheus. Safe for concurrent use.
type Source struct {
	api     v1.API
	host    string
	timeout time.Duration
	queries map[string]*template.Template
}

// New checks the options and parses the templates; it does not connect.
func New(o Options) (*Source, error) {
	queries, err := o.Queries.compile()
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL of Prometheus: %w", err)
	}
	if base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf(
			"the URL of Prometheus is %q: write it as http://HOST:PORT or https://HOST/PREFIX", base.Redacted(),
		)
	}
	client, err := httpClient(o)
	if err != nil {
		return nil, fmt.Errorf("preparing to talk to Prometheus: %w", err)
	}
	c, err := api.NewClient(api.Config{Address: o.URL, Client: client})
	if err != nil {
		return nil, fmt.Errorf("preparing to talk to Prometheus: %w", err)
	}
	return &Source{
		api: v1.NewAPI(c), host: base.Host + base.Path, timeout: cmp.Or(o.Timeout, 30*time.Second), queries: queries,
	}, nil
}

// httpClient uses client-go's transport, which reloads token files.
func httpClient(o Options) (*http.Client, error) {
	client, err := rest.HTTPClientFor(&rest.Config{
		BearerTokenFile: o.BearerTokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: o.CAFile},
	})
	if err != nil {
		return nil, err
	}
	// Without configuration client-go returns the shared http.DefaultClient: do not change it.
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	t := &transport{next: next, headers: o.Headers, limit: cmp.Or(o.MaxBytes, 64*memory.MiB)}
	return &http.Client{Transport: t, CheckRedirect: refuseRedirect}, nil
}

// transport adds the headers and bounds the responses.
type transport struct {
	next    http.RoundTripper
	headers map[string]string
	limit   memory.Bytes
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, int64(t.limit))
	return resp, nil
}

var errRedirect = errors.New("it redirects elsewhere, and memfit does not follow with its token: name the final URL")

func refuseRedirect(*http.Request, []*http.Request) error { return errRedirect }
