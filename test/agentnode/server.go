// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package agentnode

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// server implements the part of an API server that the agent uses. Its profile enables rescue, which costs the agent
// most.
type server struct {
	url  string
	http http.Server

	mu       sync.Mutex
	pods     []corev1.Pod
	requests []byte
	writes   int
	written  map[string]v1alpha1.MemorySnapshotStatus // by pod
}

func serve(pods []corev1.Pod) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by Node.Stop
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &server{
		url: "http://" + listener.Addr().String(), pods: pods, written: map[string]v1alpha1.MemorySnapshotStatus{},
	}
	const snapshot = " /apis/memfit.dev/v1alpha1/namespaces/{namespace}/memorysnapshots/{name}"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", list(func() any {
		s.mu.Lock()
		defer s.mu.Unlock()
		return corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: listed, Items: slices.Clone(s.pods),
		}
	}))
	mux.HandleFunc("GET /apis/memfit.dev/v1alpha1/memoryprofiles", list(func() any {
		return v1alpha1.MemoryProfileList{TypeMeta: kind("MemoryProfileList"), ListMeta: listed}
	}))
	mux.HandleFunc("GET /apis/memfit.dev/v1alpha1/clustermemoryprofiles", list(func() any {
		p := v1alpha1.ClusterMemoryProfile{TypeMeta: kind("ClusterMemoryProfile"), ObjectMeta: metav1.ObjectMeta{Name: "all"}}
		p.Spec.Sizing.Rescue = v1alpha1.RescueEnabled
		return v1alpha1.ClusterMemoryProfileList{
			TypeMeta: kind("ClusterMemoryProfileList"), ListMeta: listed, Items: []v1alpha1.ClusterMemoryProfile{p},
		}
	}))
	mux.HandleFunc("GET"+snapshot, refuse(http.StatusNotFound))
	mux.HandleFunc("PATCH"+snapshot, s.patch)
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

func refuse(code int) http.HandlerFunc {
	reason := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	}[code]
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, code, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: string(reason),
		})
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

var listed = metav1.ListMeta{ResourceVersion: "1"}

func kind(name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: name}
}

// list serves lists, refuses watches with initial events, like older API servers, and keeps other watches open.
func list(of func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			refuse(http.StatusUnprocessableEntity)(w, r)
		case query.Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			answer(w, http.StatusOK, of())
		}
	}
}

func (s *server) patch(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var snapshot v1alpha1.MemorySnapshot
	if err := json.Unmarshal(body, &snapshot); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var headers strings.Builder
	_ = r.Header.Write(&headers)
	s.mu.Lock()
	s.requests = append(append(append(s.requests, r.URL.String()...), headers.String()...), body...)
	s.writes++
	s.written[r.PathValue("name")] = snapshot.Status
	s.mu.Unlock()
	answer(w, http.StatusOK, snapshot)
}
