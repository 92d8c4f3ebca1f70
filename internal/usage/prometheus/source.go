// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// Name implements [usage.Source].
func (s *Source) Name() string { return "prometheus" }

// Read returns the last samples of the containers on node, with the times of their measurement. For up to five minutes
// it also returns ended containers. No container is an error: every node runs some, so the labels differ from those in
// the queries, or the node is not scraped.
func (s *Source) Read(ctx context.Context, node usage.Node) (usage.Reading, error) {
	v, at := nodeValues(node), readings{}
	for _, q := range []struct {
		query string
		set   func(*reading, float64)
	}{
		{"RSS", (*reading).setRSS},
		{"Swap", (*reading).setSwap},
		{"Usage", (*reading).setDemand},
		{"WorkingSet", (*reading).setWorkingSet},
		{"Time", (*reading).setTime},
	} {
		vector, err := s.instant(ctx, q.query, v)
		if err != nil {
			return usage.Reading{}, err
		}
		at.add(vector, q.set)
	}
	samples, unnamed := at.samples(node.Swaps)
	switch {
	case len(samples) > 0:
		return usage.Reading{Source: s.Name(), Samples: samples}, nil
	case unnamed > 0:
		return usage.Reading{}, s.wrap(fmt.Errorf("%s of node %s has no label id with the cgroup path of a pod (%d series): "+
			"pods of one name cannot be distinguished. Keep it (labeldrop in metric_relabel_configs or in "+
			"cAdvisorMetricRelabelings of kube-prometheus-stack, or a sum in your query)", rss, node.Name, unnamed))
	default:
		return usage.Reading{}, s.wrap(fmt.Errorf("%s of node %s has no container: check that it is scraped, and the "+
			"label of its name; override the queries if that differs", rss, node.Name))
	}
}

// Count returns the number of series in the result of an instant query. It returns an error if the result is not a
// vector, or is empty and incomplete.
func (s *Source) Count(ctx context.Context, query string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, warnings, err := s.api.Query(ctx, query, time.Time{}, v1.WithTimeout(s.timeout))
	if err != nil {
		return 0, s.explain("rollbackQuery", query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return 0, s.wrap(fmt.Errorf("%s gives a %s; write an expression like that of an alerting rule, which returns "+
			"nothing while the workload is healthy", usage.FirstLine(query), value.Type()))
	}
	if partial := warned(warnings); len(partial) > 0 && len(vector) == 0 {
		return 0, s.wrap(errors.Join(partial...)) // missing stores may have the series
	}
	return len(vector), nil
}

// instant returns current values.
func (s *Source) instant(ctx context.Context, name string, v values) (model.Vector, error) {
	return run[model.Vector](ctx, s, name, v, "vector", func(ctx context.Context, query string) (model.Value, error) {
		value, _, err := s.api.Query(ctx, query, time.Time{}, v1.WithTimeout(s.timeout))
		return value, err
	})
}

// series returns values over time.
func (s *Source) series(ctx context.Context, name string, v values, r v1.Range) (model.Matrix, error) {
	return run[model.Matrix](ctx, s, name, v, "series", func(ctx context.Context, query string) (model.Value, error) {
		value, _, err := s.api.QueryRange(ctx, query, r, v1.WithTimeout(s.timeout))
		return value, err
	})
}

// run fills in the template of a query, and sends it. result names type T in errors.
func run[T model.Value](
	ctx context.Context, s *Source, name string, v values, result string,
	send func(ctx context.Context, query string) (model.Value, error),
) (T, error) {
	var none T
	v = maps.Clone(v)
	v["Selector"] = s.selector
	query, err := fill(s.queries[name], v)
	if err != nil {
		return none, s.wrap(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value, err := send(ctx, query)
	if err != nil {
		return none, s.explain(name, query, err)
	}
	typed, ok := value.(T)
	if !ok {
		return none, s.wrap(fmt.Errorf("the query %s returns no %s: %s", name, result, usage.FirstLine(query)))
	}
	return typed, nil
}

// warned returns the warnings about missing data, for example of Thanos about stores that do not respond.
func warned(warnings v1.Warnings) []error {
	var partial []error
	for _, w := range warnings {
		if !strings.HasPrefix(w, "PromQL info") {
			partial = append(partial, errors.New("prometheus returned a partial result: "+usage.FirstLine(w)))
		}
	}
	return partial
}

// Options are the address of Prometheus, and what to query.
type Options struct {
	// URL is the base URL, with a path prefix if there is one: "http://prometheus.monitoring:9090",
	// "https://mimir.example/prometheus", "http://vmselect:8481/select/0/prometheus". Required. A user and password in
	// the URL are sent as basic authentication.
	URL             string
	BearerTokenFile string            // read again every minute
	CAFile          string            // authorities for an https URL; empty: the system's
	Headers         map[string]string // sent with each request, for example X-Scope-OrgID for Mimir's tenants
	Timeout         time.Duration     // of one query, after which Prometheus cancels it; 0: 30s
	MaxBytes        memory.Bytes      // maximum size of a response; 0: 64Mi. Decoding needs about as much again.
	Queries         Queries           // replace the defaults
	// Selector has label matchers that the default queries add, for a server with the series of several clusters:
	// cluster="prod-1".
	Selector string
}

// Source reads usage from Prometheus. Safe for concurrent use.
type Source struct {
	api      v1.API
	host     string
	timeout  time.Duration
	queries  map[string]*template.Template
	selector string // starts with a comma, unless it is empty
}

// New checks the options and parses the templates; it does not connect.
func New(o Options) (*Source, error) {
	queries, err := o.Queries.compile()
	if err != nil {
		return nil, err
	}
	if o.Selector != "" && !matchers.MatchString(o.Selector) {
		return nil, fmt.Errorf(`the selector of Prometheus is %q: write it as LABEL="VALUE",LABEL=~"REGEX"`, o.Selector)
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
		return nil, fmt.Errorf("creating the Prometheus client: %w", err)
	}
	c, err := api.NewClient(api.Config{Address: o.URL, Client: client})
	if err != nil {
		return nil, fmt.Errorf("creating the Prometheus client: %w", err)
	}
	s := &Source{
		api: v1.NewAPI(c), host: base.Host + base.Path, timeout: cmp.Or(o.Timeout, 30*time.Second), queries: queries,
	}
	if o.Selector != "" {
		s.selector = "," + o.Selector
	}
	return s, nil
}

// httpClient returns a client with client-go's transport, which reloads token files.
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
	refuse := func(*http.Request, []*http.Request) error { return errRedirect }
	return &http.Client{Transport: t, CheckRedirect: refuse}, nil
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

var errRedirect = errors.New("it redirects, and memfit does not send its token elsewhere: set the final URL")
