// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/memfit/memfit/test/authority"
)

// echo answers with the size of what it got, and refuses like the pod webhook.
type echo struct{ ask func() }

func (e echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.ask != nil {
		e.ask()
	}
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%d %t", len(body), err == nil)
}

func (echo) Refuse(w http.ResponseWriter, beginning []byte, why string) {
	fmt.Fprintf(w, "refused %.9s: %s", beginning, why)
}

// running is a server that serves.
type running struct {
	*Server
	address string
	client  *tls.Config
	t       *testing.T
}

func start(t *testing.T, hook http.Handler, change func(*Options)) *running {
	t.Helper()
	dir, ca := t.TempDir(), authority.New(t)
	ca.Write(t, dir, "tls", "webhook")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	o := Options{
		Host: "127.0.0.1", Port: port, CertDir: dir, Metrics: NewMetrics(prometheus.NewRegistry()),
	}
	if change != nil {
		change(&o)
	}
	s := New(o)
	s.Register("/", hook)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for s.StartedChecker()(nil) != nil {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	return &running{
		Server: s, address: fmt.Sprintf("127.0.0.1:%d", port),
		client: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, t: t,
	}
}

// dial opens a connection and ends the handshake.
func (r *running) dial() *tls.Conn {
	r.t.Helper()
	conn, err := tls.Dial("tcp", r.address, r.client)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *running) post(body []byte) (string, error) {
	transport := &http.Transport{TLSClientConfig: r.client, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Post(
		"https://"+r.address+"/", "application/json", bytes.NewReader(body),
	)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

func (r *running) asks(body, want string) {
	r.t.Helper()
	if got, err := r.post([]byte(body)); err != nil || got != want {
		r.t.Errorf("the answer to %d bytes is %q (%v), want %q", len(body), got, err, want)
	}
}

// counts waits until so many are counted as refused: a client may hear of it first.
func (r *running) counts(reason string, want float64) {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); r.refused(reason) < want && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := r.refused(reason); got != want {
		r.t.Errorf("%v counted as refused for %s, want %v", got, reason, want)
	}
}

func (r *running) refused(reason string) float64 {
	var out dto.Metric
	if err := r.options.Metrics.refused.WithLabelValues(reason).Write(&out); err != nil {
		r.t.Fatal(err)
	}
	return out.GetCounter().GetValue()
}

func TestBodiesOfEverySizeArriveWhole(t *testing.T) {
	r := start(t, echo{}, nil)
	for _, size := range []int{
		0, 1, initialBuffer - 1, initialBuffer, initialBuffer + 1, smallBody, smallBody + 1, 1 << 20, MaxBody,
	} {
		r.asks(strings.Repeat("x", size), fmt.Sprintf("%d true", size))
	}
	for _, rest := range []int{MaxBody - 8, MaxBody} { // with the beginning, one byte too many is the least
		r.asks(
			"beginning"+strings.Repeat("x", rest),
			fmt.Sprintf("refused beginning: the request exceeds the maximum of %d bytes", MaxBody),
		)
	}
	if n := r.refused(reasonTooLarge); n != 2 {
		t.Errorf("%v counted as too large", n)
	}
	r.connections.mu.Lock()
	defer r.connections.mu.Unlock()
	if r.connections.bodyBytes != 0 {
		t.Errorf("%d bytes are held of nothing", r.connections.bodyBytes)
	}
}

// TestWhatIsAnnouncedCostsNothing: 300 connections that announce 2 MiB each and send nothing, and as many that do not
// even greet.
func TestWhatIsAnnouncedCostsNothing(t *testing.T) {
	const each = 300
	r := start(t, echo{}, nil)
	r.asks("x", "1 true")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range each {
		conn := r.dial()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 2<<20)
		silent, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent.Close() })
		r.asksNow()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse); grown > 48<<20 {
		t.Errorf("%d connections, client and server side, keep %d bytes", 2*each, grown)
	}
	r.connections.mu.Lock()
	if n := len(r.connections.open); n > maxConnections {
		t.Errorf("%d connections are open of %d with room for %d", n, 2*each, maxConnections)
	}
	// A slow machine may not fill the room before silent ones time out: with room for one, each takes another's place.
	r.connections.max = 1
	r.connections.mu.Unlock()
	given := r.refused(reasonClosed)
	for range 10 {
		r.dial()
	}
	if n := r.refused(reasonClosed) - given; n < 9 {
		t.Errorf("%v connections were given up for 10 with room for one", n)
	}
}

// asksNow: an API server is served meanwhile.
func (r *running) asksNow() {
	r.t.Helper()
	r.asks("x", "1 true")
}

// TestBytesInFlightAreBounded: bodies that stop just before their end hold no more than the bound, and a new one is
// served. There is no network in it, because it matters which body is there first, and a slow machine would end slow
// bodies by their deadline instead.
func TestBytesInFlightAreBounded(t *testing.T) {
	const size, slow = 300 << 10, 12 // a body holds 368 KiB while it grows: two fit
	metrics := NewMetrics(prometheus.NewRegistry())
	cs := newConnections(maxConnections, 1<<20, metrics)
	handler := cs.handler(echo{})
	asks := func(body io.Reader, announced int64) string {
		ctx := context.WithValue(t.Context(), connectionKey{}, cs.add(pipe{address: "10.0.0.1:1"}))
		r, w := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body), httptest.NewRecorder()
		r.ContentLength = announced
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	var senders sync.WaitGroup
	end := make(chan struct{})
	for range slow {
		stops := make(chan struct{})
		senders.Go(func() {
			body := io.MultiReader(strings.NewReader(strings.Repeat("x", size)), stopping{stops, end})
			if answer := asks(body, size+1); answer != "" && !strings.Contains(answer, "is incomplete") {
				t.Errorf("the answer to half a body is %q", answer)
			}
		})
		<-stops
		if got, want := asks(strings.NewReader(strings.Repeat("x", size)), size), fmt.Sprint(size, " true"); got != want {
			t.Errorf("the answer to a whole body is %q, want %q", got, want)
		}
		cs.mu.Lock()
		if cs.bodyBytes > cs.maxBodyBytes {
			t.Errorf("%d bytes are held", cs.bodyBytes)
		}
		cs.mu.Unlock()
	}
	close(end)
	senders.Wait()
	var givenUp dto.Metric
	if err := metrics.refused.WithLabelValues(reasonClosed).Write(&givenUp); err != nil {
		t.Fatal(err)
	}
	if n := givenUp.GetCounter().GetValue(); n != slow-1 {
		t.Errorf("%v were given up, want all slow ones but the last", n)
	}
	if cs.bodyBytes != 0 {
		t.Errorf("%d bytes are held of nothing", cs.bodyBytes)
	}
}

// stopping says when it is read from, and is cut off when it may end.
type stopping struct{ stops, end chan struct{} }

func (s stopping) Read([]byte) (int, error) {
	close(s.stops)
	<-s.end
	return 0, io.ErrUnexpectedEOF
}

// TestLargeRequestsTakeTurns: what does not get one in time is refused with a reason, and a small one does not wait.
func TestLargeRequestsTakeTurns(t *testing.T) {
	busy, begun := make(chan struct{}), make(chan struct{}, 10)
	first := true
	r := start(t, echo{ask: func() {
		if first {
			first = false
			begun <- struct{}{}
			<-busy
		}
	}}, nil)
	large := bytes.Repeat([]byte("x"), MaxBody)
	done := make(chan string)
	go func() {
		answer, err := r.post(large)
		done <- fmt.Sprint(answer, err)
	}()
	<-begun
	r.asks("x", "1 true")
	r.asks(string(large), "refused xxxxxxxxx: memfit is busy with other large requests")
	close(busy)
	if answer := <-done; answer != fmt.Sprint(MaxBody, " true", error(nil)) {
		t.Errorf("the first one gets %s", answer)
	}
	if n := r.refused(reasonBusy); n != 1 {
		t.Errorf("%v counted as busy", n)
	}
}

// TestWhoIsGivenUp: of the addresses with most connections the oldest that is not being answered.
func TestWhoIsGivenUp(t *testing.T) {
	cs := newConnections(4, 1000, NewMetrics(prometheus.NewRegistry()))
	add := func(address string) *connection { return cs.add(pipe{address: address}) }
	api := add("10.0.0.1:1")
	old, next, young := add("10.0.0.2:1"), add("10.0.0.2:2"), add("10.0.0.2:3")
	cs.stateChanged(old, http.StateIdle) // just had a request
	if add("10.0.0.1:2") == nil || cs.isOpen(next) || !cs.isOpen(api) || !cs.isOpen(old) || !cs.isOpen(young) {
		t.Error("not the oldest of whoever has most was given up")
	}
	for c := range cs.open {
		cs.setBusy(c, true)
	}
	if add("10.0.0.1:3") != nil {
		t.Error("one more although all are busy")
	}
	cs.setBusy(young, false)
	if !cs.reserve(young, 600) || !cs.reserve(api, 600) || cs.isOpen(young) || cs.bodyBytes != 600 {
		t.Errorf("memory was not taken from whoever is slow: %d held", cs.bodyBytes)
	}
	if cs.reserve(old, 600) {
		t.Error("memory was taken from a request that is being answered")
	}
	cs.shrink(young, 0)
	if cs.shrink(api, 0); cs.bodyBytes != 0 {
		t.Errorf("%d bytes are held of nothing", cs.bodyBytes)
	}
}

// pipe is a connection from an address.
type pipe struct {
	net.Conn

	address string
}

func (p pipe) RemoteAddr() net.Addr { return addr(p.address) }
func (pipe) Close() error           { return nil }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// TestClientCertificates: with a client CA only who has a certificate of it, and one of the names, is served.
func TestClientCertificates(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, echo{}, func(o *Options) { o.ClientCA, o.ClientNames = file, []string{"kube-apiserver"} })
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, c := range map[string]struct {
			by     *authority.Authority
			name   string
			served bool
		}{
			"the API server":        {ca, "kube-apiserver", true},
			"somebody else":         {ca, "somebody", false},
			"another authority":     {other, "kube-apiserver", false},
			"nobody":                {nil, "", false},
			"the API server, again": {ca, "kube-apiserver", true},
		} {
			r.client.Certificates, r.client.MaxVersion = nil, version
			if c.by != nil {
				pair, err := tls.X509KeyPair(c.by.Sign(t, c.name))
				if err != nil {
					t.Fatal(err)
				}
				r.client.Certificates = []tls.Certificate{pair}
			}
			answer, err := r.post([]byte("x"))
			if served := err == nil && answer == "1 true"; served != c.served {
				t.Errorf("%s: served %t (%v), want %t", name, served, err, c.served)
			}
		}
	}
	r.counts(reasonCertificate, 6)
	r.counts(reasonHandshake, 0)
	r.client.MinVersion, r.client.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	if _, err := r.post([]byte("x")); err == nil {
		t.Error("TLS 1.1 is served")
	}
	r.counts(reasonHandshake, 1) // the one of TLS 1.1
	r.counts(reasonCertificate, 6)
}

// TestAuthoritiesAreFollowed: a renewed file counts after a moment, and a broken one does not end what worked.
func TestAuthoritiesAreFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if _, err := newClients(t.Context(), file, nil); err == nil || !strings.Contains(err.Error(), "--client-ca") {
		t.Errorf("a file that is not there: %v", err)
	}
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(authority.New(t).PEM)
	c, err := newClients(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	c.require(config)
	known := func() *x509.CertPool {
		t.Helper()
		with, err := config.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return with.ClientCAs
	}
	first := known()
	write(authority.New(t).PEM)
	for known().Equal(first) { // the test's own time-out ends it
		time.Sleep(time.Millisecond)
	}
	second := known()
	write([]byte("nothing"))
	if err := c.authorities.(dynamiccertificates.ControllerRunner).RunOnce(t.Context()); err == nil {
		t.Error("a broken file is read")
	}
	if !known().Equal(second) {
		t.Error("a broken file ends what worked")
	}
}
