// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"

	"github.com/memfit/memfit/api/v1alpha1"
)

// server answers with the snapshot that it has, and keeps what is written.
type server struct {
	mu    sync.Mutex
	has   *v1alpha1.MemorySnapshot
	reads int
	wrote v1alpha1.MemorySnapshot
	gone  bool          // the snapshot was deleted
	slow  chan struct{} // whole snapshots wait for it; nil: they do not
}

func (s *server) answer(req *http.Request) (*http.Response, error) {
	code, body := http.StatusNotFound, any(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Reason: metav1.StatusReasonNotFound, Code: 404,
	})
	apply := req.Header.Get("Content-Type") == string(types.ApplyPatchType)
	if s.slow != nil && (apply || req.Method == http.MethodGet) {
		<-s.slow
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.Method == http.MethodPatch && s.gone && !apply:
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
	client, err := rest.RESTClientForConfigAndClient(&rest.Config{
		APIPath: "/apis", QPS: -1, ContentConfig: rest.ContentConfig{
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(), GroupVersion: &v1alpha1.GroupVersion,
		},
	}, fake.CreateHTTPClient(s.answer))
	if err != nil {
		t.Fatal(err)
	}
	return NewWriter(client)
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
		was.Containers[0].LastKill = &v1alpha1.KillSnapshot{MinuteBefore: v1alpha1.MinuteBefore{Summary: "killed"}}
		s := &server{has: object(&Pod{NamespacedName: web, UID: c.uid}, was)}
		w := writerTo(t, s)
		for range 2 {
			now := status(1)
			now.NodeName = "node-a"
			if _, err := w.write(t.Context(), job{pod, now}); err != nil {
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

// TestAlarm: an alarm changes one field of a snapshot that is there, and comes with a whole one otherwise. A snapshot
// that was queued before has the newest alarm.
func TestAlarm(t *testing.T) {
	alarm := func(sequence int64) *v1alpha1.MemorySnapshotStatus {
		s := status(1)
		s.NodeName, s.Alarm = "node-a", &v1alpha1.Alarm{Container: "app", ContainerID: "abc", Sequence: sequence}
		return s
	}
	for name, c := range map[string]struct {
		has   *v1alpha1.MemorySnapshot
		whole bool // the first alarm comes with a whole snapshot
	}{
		"none is there":         {nil, true},
		"of an earlier pod":     {object(&Pod{NamespacedName: web, UID: "zero"}, alarm(3)), true},
		"of an earlier agent":   {object(&Pod{NamespacedName: web, UID: "one"}, alarm(3)), true},
		"of another node's pod": {object(&Pod{NamespacedName: web, UID: "two"}, status(1)), true},
	} {
		pod := &Pod{NamespacedName: web, UID: "one"}
		s := &server{has: c.has}
		w := writerTo(t, s)
		for i, sequence := range []int64{7, 8} {
			if _, err := w.writeAlarm(t.Context(), job{pod, alarm(sequence)}); err != nil {
				t.Fatal(err)
			}
			whole := len(s.wrote.OwnerReferences) == 1 && s.wrote.Status.NodeName != ""
			if s.wrote.Status.Alarm == nil || s.wrote.Status.Alarm.Sequence != sequence || whole != (c.whole && i == 0) {
				t.Errorf("%s: alarm %d is written as %+v", name, sequence, s.wrote)
			}
		}
		if _, err := w.write(t.Context(), job{pod, alarm(7)}); err != nil || s.wrote.Status.Alarm.Sequence != 8 {
			t.Errorf("%s: the snapshot has alarm %+v (%v)", name, s.wrote.Status.Alarm, err)
		}
		s.gone = true
		if _, err := w.writeAlarm(t.Context(), job{pod, alarm(9)}); err != nil || len(s.wrote.OwnerReferences) != 1 {
			t.Errorf("%s: after the snapshot was deleted: %+v (%v)", name, s.wrote, err)
		}
	}
}

// TestTheFirstAlarmOfAPod: nor do the requests of its first snapshot wait behind those that are held back.
func TestTheFirstAlarmOfAPod(t *testing.T) {
	s := &server{}
	w := writerTo(t, s)
	w.pace = nil
	with := status(1)
	with.Alarm = &v1alpha1.Alarm{Container: "app", ContainerID: "abc", Sequence: 1}
	_, err := w.writeAlarm(t.Context(), job{&Pod{NamespacedName: web, UID: "one"}, with})
	if err != nil || s.reads != 1 || s.wrote.Status.Alarm == nil {
		t.Errorf("%d reads, %+v (%v)", s.reads, s.wrote.Status, err)
	}
}

// TestAlarmsDoNotWait: for snapshots that an API server takes its time for.
func TestAlarmsDoNotWait(t *testing.T) {
	s := &server{slow: make(chan struct{})}
	w := writerTo(t, s)
	first := &Pod{NamespacedName: web, UID: "one", stored: true}
	second := &Pod{NamespacedName: web, UID: "two", stored: true}
	w.Submit(first, status(1))
	go w.Run(t.Context())
	with := status(1)
	with.Alarm = &v1alpha1.Alarm{Container: "app", ContainerID: "abc", Sequence: 1}
	if !w.Alarm(second, with) {
		t.Fatal("the queue is full")
	}
	if r := <-w.Results(); r.Pod != "two" || r.Alarm != with.Alarm || r.Err != nil {
		t.Errorf("%+v comes first", r)
	}
	close(s.slow)
	if r := <-w.Results(); r.Pod != "one" || r.Alarm != nil || r.Err != nil {
		t.Errorf("%+v comes second", r)
	}
}
