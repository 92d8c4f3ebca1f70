// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// kubelet is a TLS server that answers as a kubelet does, and the files memfit would have to talk to it.
type kubelet struct {
	*httptest.Server
	ca, token string // files
	seen      []*http.Request
	node      usage.Node
}

func serving(t *testing.T, answer http.HandlerFunc) *kubelet {
	t.Helper()
	k := &kubelet{ca: filepath.Join(t.TempDir(), "ca.crt"), token: filepath.Join(t.TempDir(), "token")}
	k.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.seen = append(k.seen, r)
		answer(w, r)
	}))
	k.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are the point of some tests
	k.StartTLS()
	t.Cleanup(k.Close)
	write(t, k.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw}))
	write(t, k.token, []byte("the-token"))
	k.node = nodeAt(t, k.Listener.Addr().String())
	return k
}

func nodeAt(t *testing.T, address string) usage.Node {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return usage.Node{Name: "n1", Address: host, Port: int32(p)}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// config is what a manager in a cluster has: it trusts the cluster CA, whose kubelet certificates these may or may not
// be.
func (k *kubelet) config() *rest.Config {
	return &rest.Config{
		Host: "https://10.0.0.1:443", BearerToken: "an-old-token", BearerTokenFile: k.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: k.ca, ServerName: "kubernetes.default.svc"},
	}
}

func (k *kubelet) read(t *testing.T, o Options) (usage.Reading, error) {
	t.Helper()
	return source(t, k.config(), o).Read(t.Context(), k.node)
}

func source(t *testing.T, config *rest.Config, o Options) *Source {
	t.Helper()
	s, err := New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func summaryOf(pods int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(typicalSummary(0, pods, false)) }
}

func TestReadAsksTheKubeletItself(t *testing.T) {
	k := serving(t, summaryOf(2))
	got, err := k.read(t, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Samples) != 4 || got.Source != "kubelet" || !got.Samples[0].HasRSS {
		t.Errorf("reading %+v, want 4 samples with RSS from the kubelet", got)
	}
	r := k.seen[0]
	if r.URL.Path != "/stats/summary" || r.Header.Get("Authorization") != "Bearer the-token" {
		t.Errorf("asked %s with %q, want /stats/summary with the token of the file", r.URL, r.Header.Get("Authorization"))
	}
}

func TestCountersAsksForCadvisor(t *testing.T) {
	k := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics/cadvisor" {
			_, _ = io.WriteString(w, "container_oom_events_total{"+app+"} 3\n")
		}
	})
	got, err := source(t, k.config(), Options{}).Counters(t.Context(), k.node)
	if err != nil || got[web].OOMEvents != 3 {
		t.Errorf("counters %v, %v, want 3 kills in %v", got, err, web)
	}
}

func TestReadSaysWhatToDo(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
	}
	const forbidden = "Forbidden (user=system:serviceaccount:memfit-system:memfit, verb=get, resource=nodes, " +
		"subresource(s)=[stats])"
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		o      Options
		want   []string
	}{
		"401": {status(401, "Unauthorized"), Options{}, []string{"401 Unauthorized", "authentication.webhook.enabled"}},
		"403": {status(403, forbidden), Options{}, []string{forbidden, "Grant", "`get` on nodes/stats"}},
		"404": {status(404, "404 page not found"), Options{}, []string{"status.daemonEndpoints"}},
		"500": {
			status(500, "Internal Error: failed to get root cgroup stats"), Options{}, []string{"root cgroup stats", "its log"},
		},
		"503": {status(503, ""), Options{}, []string{"503 Service Unavailable"}},
		"a body that is a book": {
			status(403, strings.Repeat("book ", 1000)+"\x1b[31m"), Options{}, []string{strings.Repeat("book ", 59) + "bo..."},
		},
		"a redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
			},
			Options{}, []string{"it redirects"},
		},
		"a summary that breaks off": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(typicalSummary(0, 2, false)[:900]) }, Options{},
			[]string{"unexpected EOF"},
		},
		"a summary without end": {
			summaryOf(50), Options{}, []string{"exceeds 96Ki"},
		},
		"an answer that takes for ever": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			Options{Timeout: 50 * time.Millisecond}, []string{"No answer in time", "NetworkPolicy or firewall"},
		},
		"an answer that starts and takes for ever": {
			func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write(typicalSummary(0, 2, false)[:900])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			},
			Options{Timeout: 50 * time.Millisecond}, []string{"No answer in time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := serving(t, test.answer)
			s := source(t, k.config(), test.o)
			s.maxSize[summaryPath] = 96 * memory.KiB
			got, err := s.Read(t.Context(), k.node)
			if err == nil || got.Samples != nil {
				t.Fatalf("reading %v, error %v, want an error and nothing else", got, err)
			}
			for _, want := range append(test.want, "kubelet of node n1 (127.0.0.1:", "/stats/summary): ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error is\n%s\nwithout %q", err, want)
				}
			}
			if len(err.Error()) > 700 {
				t.Errorf("error has %d characters: nobody reads that at night", len(err.Error()))
			}
		})
	}
}

func TestReadVerifiesWhoAnswers(t *testing.T) {
	k, other := serving(t, summaryOf(1)), serving(t, summaryOf(1))
	write(t, other.ca, authority(t))
	elsewhere := k.node
	elsewhere.Address = "localhost" // which its certificate does not name
	for name, test := range map[string]struct {
		config *rest.Config
		node   usage.Node
		o      Options
		is     func(error) bool
		want   string
	}{
		"signed by the cluster CA":   {config: k.config(), node: k.node},
		"signed by the CA of a file": {config: other.config(), node: k.node, o: Options{CAFile: k.ca}},
		"not verified, as asked": {
			config: other.config(), node: k.node, o: Options{InsecureSkipKubeletTLSVerify: true},
		},
		"not verified, whatever CA is named": {
			config: k.config(), node: elsewhere, o: Options{CAFile: other.ca, InsecureSkipKubeletTLSVerify: true},
		},
		"signed by somebody else": {
			config: other.config(), node: k.node, is: usage.Is[x509.UnknownAuthorityError], want: "--kubelet-ca-file",
		},
		"signed by somebody else than the file": {
			config: k.config(), node: k.node, o: Options{CAFile: other.ca}, is: usage.Is[x509.UnknownAuthorityError],
			want: "serverTLSBootstrap",
		},
		"the certificate of another address": {
			config: k.config(), node: elsewhere, is: usage.Is[x509.HostnameError], want: "does not name the address",
		},
		"an unverified API server makes no unverified kubelets": {
			config: &rest.Config{BearerTokenFile: k.token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, node: k.node,
			is: usage.Is[x509.UnknownAuthorityError], want: "not signed by the CA memfit trusts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(k.seen)
			_, err := source(t, test.config, test.o).Read(t.Context(), test.node)
			switch {
			case test.is == nil && err != nil:
				t.Error(err)
			case test.is != nil && (err == nil || !test.is(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error is %v, want another kind, or %q in it", err, test.want)
			}
			if test.is != nil && len(k.seen) != before {
				t.Error("the token was sent before it was clear to whom")
			}
		})
	}
}

// authority makes a certificate that signed nothing here.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestReadNowhere(t *testing.T) {
	k := serving(t, summaryOf(1))
	plain := httptest.NewServer(summaryOf(1))
	defer plain.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	s := source(t, k.config(), Options{})

	_, err := s.Read(t.Context(), nodeAt(t, closed.Listener.Addr().String()))
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "No server is listening") {
		t.Errorf("nobody listens: %v", err)
	}
	_, err = s.Read(t.Context(), nodeAt(t, plain.Listener.Addr().String()))
	if err == nil || !strings.Contains(err.Error(), "does not use TLS") {
		t.Errorf("somebody listens without TLS: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = s.Read(ctx, k.node); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "firewall") {
		t.Errorf("memfit itself gave up: %v", err)
	}
}

func TestReadKeepsConnectionsToAFewKubelets(t *testing.T) {
	first, second := serving(t, summaryOf(2)), serving(t, summaryOf(2))
	s := source(t, first.config(), Options{})
	s.idleLeft = 1
	connections := func(k *kubelet) int {
		from := map[string]bool{}
		for range 3 {
			if _, err := s.Read(t.Context(), k.node); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range k.seen {
			from[r.RemoteAddr] = true
		}
		return len(from)
	}
	if one, other := connections(first), connections(second); one != 1 || other != 3 {
		t.Errorf(
			"3 reads each took %d and %d connections, want 1 where there is room for one and 3 where there is none", one, other,
		)
	}
}

func TestReadIgnoresHTTP2(t *testing.T) {
	k := serving(t, summaryOf(1))
	k.Close()
	k.Server = httptest.NewUnstartedServer(k.Config.Handler)
	k.EnableHTTP2 = true
	k.StartTLS()
	t.Cleanup(k.Close)
	k.node = nodeAt(t, k.Listener.Addr().String())
	if _, err := k.read(t, Options{}); err != nil || k.seen[0].ProtoMajor != 1 {
		t.Errorf("%v, asked with %s, want HTTP/1.1", err, k.seen[0].Proto)
	}
}

func TestNewRefusesFilesThatAreNotThere(t *testing.T) {
	if _, err := New(&rest.Config{}, Options{CAFile: "/nowhere/ca.crt"}); err == nil ||
		!strings.Contains(err.Error(), "/nowhere/ca.crt") {
		t.Errorf("error is %v, want one that names the file", err)
	}
}

func TestNodeAddresses(t *testing.T) {
	for want, node := range map[string]usage.Node{
		"10.0.0.1:10250": {Address: "10.0.0.1"}, "10.0.0.1:1025": {Address: "10.0.0.1", Port: 1025},
		"[fd00::1]:10250": {Address: "fd00::1"},
	} {
		if got := hostPort(node); got != want {
			t.Errorf("%+v is %s, want %s", node, got, want)
		}
	}
}
