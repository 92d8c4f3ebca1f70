// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/authority"
)

// serveKubelets serves the kubelets of all nodes, each on its own loopback address.
func (w *world) serveKubelets(t *testing.T) {
	t.Helper()
	pair, err := tls.X509KeyPair(authority.New(t).Sign(t, "kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]*node{}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			if !ok {
				http.Error(rw, "no local address", http.StatusInternalServerError)
				return
			}
			n := at[local.String()]
			switch r.URL.Path {
			case "/stats/summary":
				_ = json.NewEncoder(rw).Encode(n.summary(time.Now()))
			case "/metrics/cadvisor":
				n.counters(time.Now(), rw)
			default:
				http.NotFound(rw, r)
			}
		}),
	}
	t.Cleanup(func() { _ = server.Close() })
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	var listeners []net.Listener
	for _, n := range w.nodes {
		address := net.JoinHostPort(n.address, strconv.Itoa(w.port))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("serving kubelets: %v", err)
		}
		at[address] = n
		listeners = append(listeners, l)
	}
	for _, l := range listeners {
		go func() {
			if err := server.Serve(tls.NewListener(l, config)); !errors.Is(err, http.ErrServerClosed) {
				progress("a kubelet ended: %v", err)
			}
		}()
	}
}

// summary returns a kubelet's report of its pods' memory and processor time.
func (n *node) summary(now time.Time) stats.Summary {
	s := stats.Summary{Node: stats.NodeStats{NodeName: n.name}, Pods: []stats.PodStats{}}
	for _, pod := range n.podsForSummary(now) {
		rss := uint64(use(pod, now))
		working := rss + 8<<20
		s.Pods = append(s.Pods, stats.PodStats{
			PodRef:    stats.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)},
			StartTime: pod.CreationTimestamp,
			Containers: []stats.ContainerStats{{
				Name: "app", StartTime: pod.CreationTimestamp,
				CPU: &stats.CPUStats{Time: metav1.NewTime(now), UsageNanoCores: new(uint64(1e7))},
				Memory: &stats.MemoryStats{
					Time: metav1.NewTime(now), RSSBytes: &rss, WorkingSetBytes: &working, UsageBytes: &working,
				},
			}},
		})
	}
	return s
}

// counters writes cAdvisor's metrics: no kills, and memory with 8Mi of page cache besides RSS, as in summary.
func (n *node) counters(now time.Time, w io.Writer) {
	for _, pod := range n.runningPods() {
		rss := use(pod, now)
		labels := fmt.Sprintf(`{container="app",id="/kubepods/pod%s/app",image="app",name=%q,namespace=%q,pod=%q}`,
			pod.UID, pod.UID, pod.Namespace, pod.Name)
		for _, series := range []struct {
			name  string
			value memory.Bytes
		}{
			{"container_oom_events_total", 0}, {"container_memory_rss", rss},
			{"container_memory_usage_bytes", rss + 8*memory.MiB}, {"container_memory_total_active_file_bytes", 8 * memory.MiB},
			{"container_memory_total_inactive_file_bytes", 0},
		} {
			fmt.Fprintf(w, "%s%s %d %d\n", series.name, labels, series.value, now.UnixMilli())
		}
	}
}

// freeAddress returns a free address on the loopback interface.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
