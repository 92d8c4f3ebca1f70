// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// countingProxy serves the API server to one program: it counts requests, and answers metrics.k8s.io itself.
type countingProxy struct {
	reads, writes atomic.Int64
	server        *http.Server

	mu sync.Mutex
	// first is the time of the first request, and number the count of requests, by verb and resource.
	first  map[string]time.Time
	number map[string]int
}

// record counts a request.
func (c *countingProxy) record(r *http.Request) {
	if r.Method == http.MethodGet {
		c.reads.Add(1)
	} else {
		c.writes.Add(1)
	}
	key := r.Method + " " + resourceOf(r.URL.Path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number[key]++; c.number[key] == 1 {
		c.first[key] = time.Now()
	}
}

// firstAt returns the time of the first request; zero: none.
func (c *countingProxy) firstAt(verb, resource string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first[verb+" "+resource]
}

// count returns the number of requests.
func (c *countingProxy) count(verb, resource string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number[verb+" "+resource]
}

// resourceOf returns the resource in the path of a request; "": none.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		return ""
	}
	return parts[0]
}

// proxyFor starts a proxy for one program, and writes its address to a kubeconfig.
func (w *world) proxyFor(ctx context.Context, kubeconfig string) (*countingProxy, error) {
	transport, err := rest.TransportFor(w.config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(w.config.Host)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1, // watches
		ErrorLog: log.New(io.Discard, "", 0),
	}
	c := &countingProxy{first: map[string]time.Time{}, number: map[string]int{}}
	c.server = &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			c.record(r)
			if r.URL.Path == "/apis/metrics.k8s.io/v1beta1/pods" {
				w.podMetrics(rw)
				return
			}
			proxy.ServeHTTP(rw, r)
		})}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		if err := c.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			progress("a proxy ended: %v", err)
		}
	}()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "http://" + l.Addr().String()}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(kubeconfig, data, 0o600)
	}
	return c, err
}

// podMetrics answers as metrics-server would, with the same numbers as the kubelets.
func (w *world) podMetrics(rw http.ResponseWriter) {
	now := time.Now()
	list := metricsv1.PodMetricsList{
		TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetricsList"},
	}
	for _, n := range w.nodes {
		for _, pod := range n.runningPods() {
			list.Items = append(list.Items, metricsv1.PodMetrics{
				ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels},
				Timestamp:  metav1.NewTime(now), Window: metav1.Duration{Duration: 15 * time.Second},
				Containers: []metricsv1.ContainerMetrics{{Name: "app", Usage: corev1.ResourceList{
					corev1.ResourceMemory: *resource.NewQuantity(int64(use(pod, now))+8<<20, resource.BinarySI),
					corev1.ResourceCPU:    *resource.NewMilliQuantity(10, resource.DecimalSI),
				}}},
			})
		}
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(list)
}
