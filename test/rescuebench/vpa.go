// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// startVPA runs VPA's recommender and updater on this machine, configured like a release, but for one namespace and
// without VPA's webhook: pods are resized in place. They reach the API server through [serveMetrics], so that the
// cluster needs no metrics server. stop stops them and deletes VPA's CRDs.
func startVPA(
	ctx context.Context, k8s client.Client, config *rest.Config, o *options, namespace string,
) (stop func(), err error) {
	definitions, err := create(ctx, k8s, o.vpaCRDs)
	if err != nil {
		return nil, fmt.Errorf("creating VPA's CRDs, which the cluster must not have yet: %w", err)
	}
	if err := awaitServed(ctx, k8s, namespace); err != nil {
		return nil, err
	}
	server, err := serveMetrics(config, k8s)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rescuebench")
	if err != nil {
		return nil, err
	}
	var programs []*exec.Cmd
	stop = func() {
		for _, p := range programs {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		server.Close()
		for _, o := range definitions {
			_ = k8s.Delete(context.WithoutCancel(ctx), o)
		}
		_ = os.RemoveAll(dir)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bench": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"bench": {Cluster: "bench"}},
		CurrentContext: "bench",
	}, kubeconfig)
	for name, args := range map[string][]string{
		"vpa-recommender": {"--address=127.0.0.1:0"},
		"vpa-updater":     {"--address=127.0.0.1:0", "--min-replicas=1", "--use-admission-controller-status=false"},
	} {
		if err != nil {
			break
		}
		args = append(args, "--kubeconfig="+kubeconfig, "--vpa-object-namespace="+namespace)
		p := exec.Command(filepath.Join(o.vpa, name), args...)
		if err = p.Start(); err == nil {
			programs = append(programs, p)
		}
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("starting VPA: %w", err)
	}
	return stop, nil
}

// create creates the objects of a file, and returns them.
func create(ctx context.Context, k8s client.Client, file string) (all []*unstructured.Unstructured, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := k8s.Create(ctx, o); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// awaitServed waits until the API server serves VPA's objects.
func awaitServed(ctx context.Context, k8s client.Client, namespace string) (err error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("autoscaling.k8s.io/v1")
	list.SetKind("VerticalPodAutoscalerList")
	for range 20 {
		if err = k8s.List(ctx, list, client.InNamespace(namespace)); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("listing VerticalPodAutoscalers: %w", err)
}

// newVPA returns a VerticalPodAutoscaler that sizes the Deployment of a program in place.
func newVPA(namespace, name string) *unstructured.Unstructured {
	v := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"targetRef":      map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
		"updatePolicy":   map[string]any{"updateMode": "InPlaceOrRecreate"},
		"resourcePolicy": map[string]any{"containerPolicies": []any{memoryOnly}},
	}}}
	v.SetAPIVersion("autoscaling.k8s.io/v1")
	v.SetKind("VerticalPodAutoscaler")
	v.SetNamespace(namespace)
	v.SetName(name)
	return v
}

var memoryOnly = map[string]any{"containerName": "*", "controlledResources": []any{"memory"}}

// serveMetrics starts a proxy to the API server that also serves the metrics API, with working sets from this machine's
// cgroups.
func serveMetrics(config *rest.Config, k8s client.Client) (*httptest.Server, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, found := strings.CutPrefix(r.URL.Path, "/apis/metrics.k8s.io/v1beta1/")
		parts := strings.Split(rest, "/") // namespaces/NAME/pods or pods
		switch {
		case !found:
			proxy.ServeHTTP(w, r)
		case !slices.Contains(parts, "pods"):
			http.NotFound(w, r)
		default:
			var namespace string
			if len(parts) > 2 {
				namespace = parts[1]
			}
			serveUse(w, r, k8s, namespace)
		}
	})), nil
}

func serveUse(w http.ResponseWriter, r *http.Request, k8s client.Client, namespace string) {
	var pods corev1.PodList
	if err := k8s.List(r.Context(), &pods, client.InNamespace(namespace)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var items []any
	for i := range pods.Items {
		pod := &pods.Items[i]
		if len(pod.Status.ContainerStatuses) != 1 {
			continue
		}
		dir, err := cgroupOf(pod)
		if err != nil {
			continue
		}
		used, err := workingSet(dir)
		if err != nil {
			continue
		}
		items = append(items, map[string]any{
			"metadata":  map[string]any{"namespace": pod.Namespace, "name": pod.Name, "labels": pod.Labels},
			"timestamp": metav1.Now(), "window": "15s",
			"containers": []any{map[string]any{
				"name":  pod.Spec.Containers[0].Name,
				"usage": map[string]string{"memory": strconv.FormatInt(used, 10), "cpu": "100m"},
			}},
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "metadata": map[string]any{}, "items": items,
	})
}

// workingSet returns the working set as the kubelet defines it: use minus inactive file cache.
func workingSet(dir string) (int64, error) {
	used, err := number(dir, "memory.usage_in_bytes", "memory.current")
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, err
	}
	var inactive int64
	for line := range strings.Lines(string(stat)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "total_inactive_file" || name == "inactive_file" { // with cgroup v1, the total comes later and applies
			inactive, err = strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, err
			}
		}
	}
	return max(used-inactive, 0), nil
}
