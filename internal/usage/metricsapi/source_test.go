// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// located is a Pods over a map of "namespace/name" to node; UIDs are "uid-name".
type located map[string]string

func (l located) Locate(namespace, name string) (string, types.UID, bool) {
	node, ok := l[namespace+"/"+name]
	return node, types.UID("uid-" + name), ok
}

var pods = located{"shop/web-0": "n1", "shop/web-1": "n2"}

// serving answers as an API server with metrics-server does, and counts the lists.
func serving(t *testing.T, code int, body string) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var lists atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lists.Add(1)
		if r.URL.Path != "/prefix/apis/metrics.k8s.io/v1beta1/pods" {
			t.Errorf("asked %s", r.URL)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s, &lists
}

func source(t *testing.T, host string, now func() time.Time) *Source {
	t.Helper()
	s, err := New(&rest.Config{Host: host + "/prefix"}, pods.Locate, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRead(t *testing.T) {
	s, lists := serving(
		t, 200,
		list(
			item("shop", "web-0", container("app", "300Mi")), item("shop", "web-1", container("app", "200Mi")),
			item("shop", "unknown", container("app", "1Gi")),
		),
	)
	clock := time.Unix(1000, 0)
	src := source(t, s.URL, func() time.Time { return clock })
	read := func(node string) usage.Reading {
		t.Helper()
		r, err := src.Read(t.Context(), usage.Node{Name: node})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := usage.Reading{
		Source: "metrics-api",
		Samples: []memory.Sample{{
			Container: memory.ContainerRef{Namespace: "shop", Pod: "web-0", UID: "uid-web-0", Container: "app"}, Time: measured,
			WorkingSet: 300 * memory.MiB,
		}},
	}
	if diff := cmp.Diff(want, read("n1")); diff != "" {
		t.Errorf("reading of n1 (-want +got):\n%s", diff)
	}
	if got := read("n2").Samples; len(got) != 1 || got[0].Container.Pod != "web-1" {
		t.Errorf("n2 has %v, want web-1", got)
	}
	if lists.Load() != 1 {
		t.Errorf("%d lists for two nodes, want 1", lists.Load())
	}
	clock = clock.Add(10 * time.Second)
	if read("n1"); lists.Load() != 2 {
		t.Errorf("%d lists after 10s, want 2", lists.Load())
	}
	_, err := src.Read(t.Context(), usage.Node{Name: "n3"})
	if err == nil || !strings.Contains(err.Error(), "metrics-server may not reach its kubelet") {
		t.Errorf("a node without pods: %v", err)
	}
}

func TestReadSaysWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		body string
		want string
	}{
		"403":         {403, "", "`get` and `list` on pods of metrics.k8s.io"},
		"404":         {404, "", "install metrics-server"},
		"503":         {503, "", "kubectl get apiservice"},
		"500":         {500, "", "500 Internal Server Error"},
		"torn":        {200, list(item("shop", "web-0", container("app", "1Mi")))[:90], "unexpected EOF"},
		"without end": {200, strings.Repeat(" ", 9<<10), "exceeds 8Ki"},
	} {
		t.Run(name, func(t *testing.T) {
			s, lists := serving(t, test.code, test.body)
			src := source(t, s.URL, time.Now)
			src.max = 8 * memory.KiB
			for range 2 {
				r, err := src.Read(t.Context(), usage.Node{Name: "n1"})
				if err == nil || r.Samples != nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("reading %v, error %v, want %q in it", r, err, test.want)
				}
			}
			if lists.Load() != 1 {
				t.Errorf("%d lists for two reads, want 1: thousands of nodes must not repeat an error", lists.Load())
			}
		})
	}
}

// slow is a transport that answers after a second of the bubble's time.
type slow struct{ lists atomic.Int32 }

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.lists.Add(1)
	select {
	case <-time.After(time.Second):
		body := list(item("shop", "web-0", container("app", "300Mi")))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestReadWaitsForOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &slow{}
		src, err := New(&rest.Config{Host: "http://api", Transport: transport}, pods.Locate, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		hasty, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		results := make(chan error)
		go func() {
			_, err := src.Read(hasty, usage.Node{Name: "n1"})
			results <- err
		}()
		synctest.Wait() // the hasty one lists
		for range 5 {
			go func() {
				_, err := src.Read(t.Context(), usage.Node{Name: "n1"})
				results <- err
			}()
		}
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hasty one got %v, want its deadline", err)
		}
		for range 5 {
			if err := <-results; err != nil {
				t.Errorf("a patient one got %v", err)
			}
		}
		if got := transport.lists.Load(); got != 2 {
			t.Errorf("%d lists, want one that was given up and one for all others", got)
		}
	})
}

// ending ends a context when a pod is located.
type ending struct {
	located

	cancel context.CancelFunc
}

func (e ending) Locate(namespace, name string) (string, types.UID, bool) {
	e.cancel()
	return e.located.Locate(namespace, name)
}

// TestAListThatJustCameIsUsed: the time of a caller may end after the last byte of a list. Dropped without an error,
// the list would make a reading of a node without containers.
func TestAListThatJustCameIsUsed(t *testing.T) {
	s, lists := serving(t, 200, list(item("shop", "web-0", container("app", "300Mi"))))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src, err := New(&rest.Config{Host: s.URL + "/prefix"}, ending{pods, cancel}.Locate, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if r, err := src.Read(ctx, usage.Node{Name: "n1"}); err != nil || len(r.Samples) != 1 || lists.Load() != 1 {
			t.Errorf("%d samples after %d lists, %v, want one after one", len(r.Samples), lists.Load(), err)
		}
	}
}

func TestNewRefusesAFileThatIsNotThere(t *testing.T) {
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere/ca.crt"}}
	if _, err := New(config, pods.Locate, time.Now); err == nil {
		t.Error("no CA file, no error")
	}
}

var measured = time.Date(2026, 11, 20, 14, 0, 7, 0, time.UTC)

func list(items ...string) string {
	return `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[` +
		strings.Join(items, ",") + `]}`
}

func item(namespace, name string, containers ...string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},"timestamp":"2026-11-20T14:00:07Z","window":"15s","containers":[%s]}`,
		name, namespace, strings.Join(containers, ","))
}

func container(name, size string) string {
	return fmt.Sprintf(`{"name":%q,"usage":{"cpu":"1m","memory":%q}}`, name, size)
}
