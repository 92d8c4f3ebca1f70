// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package agentnode

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// server is as much of an API server as the agent talks to.
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
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lives as long as the node
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &server{
		url: "http://" + listener.Addr().String(), pods: pods, written: map[string]v1alpha1.MemorySnapshotStatus{},
	}
	const snapshot = " /apis/memfit.dev/v1alpha1/namespaces/{namespace}/memorysnapshots/{name}"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", s.list)
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

// list answers lists, refuses watches that begin with a list, as older API servers do, and lets others wait.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
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
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, http.StatusOK, corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items: s.pods,
		})
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
