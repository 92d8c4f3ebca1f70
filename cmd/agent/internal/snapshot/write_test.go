// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"testing"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest/fake"

	"github.com/memfit/memfit/api/v1alpha1"
)

// server answers with the snapshot that it has, and keeps what is written.
type server struct {
	has   *v1alpha1.MemorySnapshot
	reads int
	wrote v1alpha1.MemorySnapshot
}

func (s *server) answer(req *http.Request) (*http.Response, error) {
	code, body := http.StatusNotFound, any(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Reason: metav1.StatusReasonNotFound, Code: 404,
	})
	switch {
	case req.Method == http.MethodPatch:
		s.wrote = v1alpha1.MemorySnapshot{}
		if err := json.NewDecoder(req.Body).Decode(&s.wrote); err != nil {
			return nil, err
		}
		code, body = http.StatusOK, s.wrote
	case s.has != nil:
		code, body = http.StatusOK, s.has
	}
	if req.Method == http.MethodGet {
		s.reads++
	}
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)),
	}, err
}

func writerTo(t *testing.T, s *server) *Writer {
	t.Helper()
	scheme := k8sruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return NewWriter(&fake.RESTClient{
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(), GroupVersion: v1alpha1.GroupVersion,
		Client: fake.CreateHTTPClient(s.answer),
	})
}

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// TestEarlierAgent: the last kill is carried over from what an agent of this node wrote of this very pod, which is read
// once. What another node wrote under the pod's name would otherwise become the word of this one.
func TestEarlierAgent(t *testing.T) {
	for name, c := range map[string]struct {
		uid  types.UID
		node string
		want bool
	}{
		"this node, this pod":            {"one", "node-a", true},
		"another node":                   {"one", "node-b", false},
		"another pod of this name":       {"two", "node-a", false},
		"another pod, of another node":   {"two", "node-b", false},
		"written before it was anywhere": {"one", "", false},
	} {
		pod := &Pod{NamespacedName: web, UID: "one"}
		was := status(1)
		was.NodeName = c.node
		was.Containers[0].LastKill = &v1alpha1.KillSnapshot{Summary: "killed"}
		s := &server{has: object(&Pod{NamespacedName: web, UID: c.uid}, was)}
		w := writerTo(t, s)
		for range 2 {
			now := status(1)
			now.NodeName = "node-a"
			if err := w.write(t.Context(), job{pod, now}); err != nil {
				t.Fatal(err)
			}
			if kill := s.wrote.Status.Containers[0].LastKill; (kill != nil) != c.want || s.reads != 1 {
				t.Errorf("%s: wrote the kill %+v after %d reads, want one: %t", name, kill, s.reads, c.want)
			}
		}
	}
}

// TestNothingIsKeptOfAPod: a write may still be queued when its pod has gone.
func TestNothingIsKeptOfAPod(t *testing.T) {
	w := writerTo(t, &server{})
	kept := func() weak.Pointer[Pod] {
		pod := &Pod{NamespacedName: web, UID: "one"}
		w.Submit(pod, status(1))
		return weak.Make(pod)
	}()
	w.Submit(&Pod{NamespacedName: web, UID: "two"}, status(1))
	go w.Run(t.Context())
	for _, want := range []types.UID{"one", "two"} {
		if r := <-w.Results(); r.Err != nil || r.Pod != want {
			t.Fatalf("%+v, want %s", r, want)
		}
	}
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the writer keeps a pod that has gone")
	}
	runtime.KeepAlive(w)
}
