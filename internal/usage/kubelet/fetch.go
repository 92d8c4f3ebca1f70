// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// Paths of a kubelet. only_cpu_and_memory halves the size of the summary, and avoids disk reads.
const (
	summaryPath  = "/stats/summary?only_cpu_and_memory=true"
	cadvisorPath = "/metrics/cadvisor"
)

const (
	defaultPort = 10250 // if the Node does not have a port
	// maxSummary is the maximum size of a summary. Some 2 KiB per container make 4 MiB for 500 pods of 4 containers.
	maxSummary = 8 * memory.MiB
	// maxCounters is the maximum size of the cAdvisor metrics: about 40 KiB per container (Kubernetes 1.36).
	maxCounters = 64 * memory.MiB
)

// Options configure a Source. The zero value verifies kubelets against the CA of the rest.Config.
type Options struct {
	// CAFile is a PEM file with the authorities that sign kubelet serving certificates. Default: the cluster CA of the
	// rest.Config, which is correct if the cluster signs them (serverTLSBootstrap).
	CAFile string
	// InsecureSkipKubeletTLSVerify sends the service account's token to any process that answers on the node's address.
	// For kubelets with self-signed serving certificates, on networks where no other process can answer.
	InsecureSkipKubeletTLSVerify bool

	Timeout    time.Duration    // for one request with its body; 0: 10s. Connecting may take 3s.
	NoCounters bool             // never read cAdvisor metrics, so that no sample has an exact demand
	Name       Namer            // resolves series without names (see [DecodeCounters]); nil: skip them
	Now        func() time.Time // used to forget deleted nodes; nil: never forget nodes
}

// keptConnections is the number of connections that remain open between reads. An open connection takes 64 KiB, a new
// one 0.7 ms of CPU. With 5,000 nodes, open connections would take 320 MiB, and new ones take 4 s per cycle.
const keptConnections = 200

// Source reads usage from the kubelet of each node. Safe for concurrent use.
type Source struct {
	client  *http.Client
	options Options
	maxSize map[string]memory.Bytes // of a response, by path

	mu       sync.Mutex
	idleLeft int             // how many more connections may remain open
	kept     map[string]bool // hosts with ports whose connection remains open, including deleted nodes
	beyond   beyondRSS
}

// New returns a Source that authenticates like config (and rereads a bearer token file), but verifies kubelets as o
// specifies. It uses no proxy, because node addresses are inside the cluster.
func New(config *rest.Config, o Options) (*Source, error) {
	client, err := rest.HTTPClientFor(clientConfig(config, o))
	if err != nil {
		return nil, fmt.Errorf("creating the kubelet client: %w", err)
	}
	client.Timeout = 0 // each request has its own deadline
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return &Source{
		client: client, options: o, idleLeft: keptConnections, kept: map[string]bool{}, beyond: newBeyondRSS(o.Now),
		maxSize: map[string]memory.Bytes{summaryPath: maxSummary, cadvisorPath: maxCounters},
	}, nil
}

// errRedirect is returned for a redirect. Kubelets do not redirect, and following one would send the token elsewhere.
var errRedirect = errors.New("it redirects, which kubelets do not: memfit does not send its token elsewhere")

// clientConfig returns config, which is for the API server, adapted to kubelets.
func clientConfig(config *rest.Config, o Options) *rest.Config {
	c := rest.CopyConfig(config)
	c.ServerName = "" // config has the API server's
	// HTTP/2 takes 16 KiB more per connection, and has no advantage for one request at a time.
	c.NextProtos = []string{"http/1.1"}
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if o.CAFile != "" {
		c.CAFile, c.CAData, c.Insecure = o.CAFile, nil, false
	}
	if o.InsecureSkipKubeletTLSVerify {
		c.CAFile, c.CAData, c.Insecure = "", nil, true
	} else {
		c.Insecure = false // not inherited: config has it for the API server
	}
	return c
}

// Name implements [usage.Source].
func (s *Source) Name() string { return "kubelet" }

// Read reads /stats/summary: RSS and working set of every running container. It adds shared and kernel memory from the
// node's last [Source.Counters], and reads the counters first if they were never requested.
func (s *Source) Read(ctx context.Context, node usage.Node) (usage.Reading, error) {
	r := usage.Reading{Source: s.Name()}
	err := s.get(ctx, node, summaryPath, func(body io.Reader) error {
		return DecodeSummary(body, func(sample memory.Sample) { r.Samples = append(r.Samples, sample) })
	})
	if err != nil {
		return usage.Reading{}, err
	}
	if !s.options.NoCounters && !s.requestedCounters(node) {
		_, _ = s.Counters(ctx, node) // after an error, samples are inexact; KillCounters reports the error
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beyond.complete(node.Name, r.Samples)
	return r, nil
}

func (s *Source) requestedCounters(node usage.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beyond.requested(node.Name)
}

// Counters reads /metrics/cadvisor: kills, and the shared and kernel memory for [Source.Read]. It costs the kubelet
// more than a summary, so read it about once a minute.
func (s *Source) Counters(ctx context.Context, node usage.Node) (Counters, error) {
	var c Counters
	err := s.get(ctx, node, cadvisorPath, func(body io.Reader) (err error) {
		c, err = DecodeCounters(body, s.options.Name)
		return err
	})
	s.mu.Lock()
	s.beyond.store(node.Name, c)
	s.mu.Unlock()
	return c, err
}

// get requests a path and passes the body of the response to read. Its errors say what to do.
func (s *Source) get(ctx context.Context, node usage.Node, path string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	a := attempt{node: node.Name, host: hostPort(node), path: path}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.host+path, nil)
	if err != nil {
		return a.explain(err)
	}
	req.Close = !s.keeps(a.host)
	resp, err := s.client.Do(req)
	if err != nil {
		return a.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return a.refused(resp)
	}
	body := http.MaxBytesReader(nil, resp.Body, int64(s.maxSize[path]))
	if err := read(body); err != nil {
		if ctx.Err() != nil { // a body cut off by the deadline appears truncated
			err = ctx.Err()
		}
		return a.explain(err)
	}
	_, _ = io.CopyN(io.Discard, body, 4<<10) // read a small rest, so that the connection can be reused
	return nil
}

// keeps reports whether the connection to a host remains open: for the first keptConnections hosts only.
func (s *Source) keeps(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.kept[host] && s.idleLeft > 0 {
		s.kept[host] = true
		s.idleLeft--
	}
	return s.kept[host]
}

func hostPort(n usage.Node) string {
	return net.JoinHostPort(n.Address, strconv.Itoa(int(cmp.Or(n.Port, defaultPort))))
}

// attempt describes one request, for its error message.
type attempt struct {
	node, host, path string
}

// refused returns the error for a status other than 200, with what to do.
func (a attempt) refused(resp *http.Response) error {
	text := strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // part of the body is enough
	if message := usage.FirstLine(string(body)); message != "" && message != http.StatusText(resp.StatusCode) {
		text += ": " + message
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
	case usage.Is[x509.UnknownAuthorityError](err):
		return "The kubelet's serving certificate is not signed by the CA memfit trusts: have the cluster sign it " +
			"(serverTLSBootstrap: true, approve its CSR), " +
			"name its CA with --kubelet-ca-file, " + insecure
	case usage.Is[x509.HostnameError](err):
		return "The kubelet's serving certificate does not name the address memfit uses: renew it with that address, " +
			insecure
	case usage.Is[x509.CertificateInvalidError](err):
		return "The kubelet's serving certificate is not valid now: renew it, and compare the clocks"
	case usage.Is[tls.RecordHeaderError](err), errors.Is(err, http.ErrSchemeMismatch):
		return "The server does not use TLS: check the kubelet's port"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "No server is listening: check that the kubelet runs, and its port (status.daemonEndpoints of the Node)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "memfit's pod cannot reach the node: check its routes and the network policies"
	case usage.Is[*net.DNSError](err):
		return "The node's address is a name that memfit cannot resolve: its Node needs an InternalIP"
	case errors.Is(err, context.Canceled):
		return ""
	case usage.TimedOut(err):
		return "No answer in time: a NetworkPolicy or firewall may drop connections from memfit to " + a.host +
			", or the node is overloaded"
	}
	return ""
}

// wrap adds the node, the host and the path to an error.
func (a attempt) wrap(err error) error {
	path, _, _ := strings.Cut(a.path, "?")
	return fmt.Errorf("kubelet of node %s (%s%s): %w", a.node, a.host, path, err)
}
