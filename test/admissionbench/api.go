// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiResources is what this API server says it has: all that the two operators ask for.
var apiResources = []struct{ groupVersion, resource, kind string }{
	{"v1", "namespaces", "Namespace"}, {"v1", "configmaps", "ConfigMap"}, {"v1", "pods", "Pod"}, {"v1", "nodes", "Node"},
	{"v1", "limitranges", "LimitRange"}, {"v1", "events", "Event"},
	{"v1", "replicationcontrollers", "ReplicationController"}, {"v1", "resourcequotas", "ResourceQuota"},
	{"apps/v1", "deployments", "Deployment"}, {"apps/v1", "replicasets", "ReplicaSet"},
	{"apps/v1", "statefulsets", "StatefulSet"}, {"apps/v1", "daemonsets", "DaemonSet"},
	{"batch/v1", "jobs", "Job"}, {"batch/v1", "cronjobs", "CronJob"},
	{"autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"},
	{"policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"},
	{"autoscaling.k8s.io/v1", "verticalpodautoscalers", "VerticalPodAutoscaler"},
	{"memfit.dev/v1alpha1", "memoryprofiles", "MemoryProfile"},
	{"memfit.dev/v1alpha1", "clustermemoryprofiles", "ClusterMemoryProfile"},
	{"memfit.dev/v1alpha1", "memoryrecommendations", "MemoryRecommendation"},
	{"memfit.dev/v1alpha1", "memorycheckpoints", "MemoryCheckpoint"},
	{"memfit.dev/v1alpha1", "memorysnapshots", "MemorySnapshot"},
}

// serveAPI answers list and watch for a world that never changes, and writes a kubeconfig that leads there. It stands
// in for an API server with its etcd, which would take many minutes to fill; what is measured starts after the caches
// are full.
func serveAPI(ctx context.Context, w *world, kubeconfig string) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: apiHandler(ctx, w), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = srv.Serve(listener) }()
	go func() {
		<-ctx.Done()
		_ = srv.Close()
	}()
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"bench","clusters":[{"name":"bench","cluster":{"server":"http://%s"}}],`+
		`"users":[{"name":"bench","user":{}}],"contexts":[{"name":"bench","context":{"cluster":"bench","user":"bench"}}]}`, listener.Addr())
	return kubeconfig, os.WriteFile(kubeconfig, []byte(config), 0o600)
}

func apiHandler(ctx context.Context, w *world) http.Handler {
	discovery := discoveryDocuments()
	kinds := map[string]string{}
	for _, r := range apiResources {
		kinds[root(r.groupVersion)+"/"+r.resource] = r.groupVersion + " " + r.kind
	}
	return http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		path := strings.TrimSuffix(req.URL.Path, "/")
		kind, isList := kinds[path]
		out.Header().Set("Content-Type", "application/json")
		switch {
		case req.Method != http.MethodGet || strings.Contains(path, "/leases/"):
			refuse(out, http.StatusForbidden) // nobody becomes leader, nobody writes: a replica that serves its webhook
		case isList && req.URL.Query().Get("watch") != "":
			hold(ctx, out, req)
		case isList:
			w.list(out, path, kind, strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadataList"))
		case discovery[path] != nil:
			_, _ = out.Write(discovery[path])
		default:
			refuse(out, http.StatusNotFound)
		}
	})
}

func refuse(out http.ResponseWriter, code int32) {
	out.WriteHeader(int(code))
	reason := metav1.StatusReasonNotFound
	if code == http.StatusForbidden {
		reason = metav1.StatusReasonForbidden
	}
	_ = json.NewEncoder(out).Encode(
		metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: code,
		},
	)
}

// hold keeps a watch open on which nothing ever happens.
func hold(ctx context.Context, out http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Get("sendInitialEvents") != "" {
		refuse(out, http.StatusForbidden) // clients then list
		return
	}
	out.WriteHeader(http.StatusOK)
	if f, ok := out.(http.Flusher); ok {
		f.Flush()
	}
	select {
	case <-ctx.Done():
	case <-req.Context().Done():
	}
}

func (w *world) list(out http.ResponseWriter, path, versionAndKind string, metadataOnly bool) {
	groupVersion, kind, _ := strings.Cut(versionAndKind, " ")
	items := w.lists[path]
	if metadataOnly {
		groupVersion, kind, items = "meta.k8s.io/v1", "PartialObjectMetadata", w.metadata[path]
	}
	fmt.Fprintf(out, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[`, groupVersion, kind+"List")
	for i, item := range items {
		if i > 0 {
			_, _ = out.Write([]byte{','})
		}
		_, _ = out.Write(item)
	}
	_, _ = out.Write([]byte("]}"))
}

func root(groupVersion string) string {
	if strings.Contains(groupVersion, "/") {
		return "/apis/" + groupVersion
	}
	return "/api/" + groupVersion
}

// discoveryDocuments are what clients read to learn which resources there are.
func discoveryDocuments() map[string][]byte {
	documents := map[string][]byte{
		"/api":     []byte(`{"kind":"APIVersions","versions":["v1"]}`),
		"/version": []byte(`{"major":"1","minor":"37","gitVersion":"v1.37.0"}`),
	}
	lists, groups := map[string]*metav1.APIResourceList{}, metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
	}
	for _, r := range apiResources {
		list := lists[r.groupVersion]
		if list == nil {
			list = &metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: r.groupVersion,
			}
			lists[r.groupVersion] = list
			if group, version, ok := strings.Cut(r.groupVersion, "/"); ok {
				v := metav1.GroupVersionForDiscovery{GroupVersion: r.groupVersion, Version: version}
				groups.Groups = append(
					groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v},
				)
			}
		}
		clusterWide := r.resource == "namespaces" || r.resource == "nodes" || r.resource == "clustermemoryprofiles"
		list.APIResources = append(
			list.APIResources,
			metav1.APIResource{
				Name: r.resource, Kind: r.kind, Namespaced: !clusterWide, Verbs: metav1.Verbs{"get", "list", "watch"},
			},
		)
	}
	encode := func(path string, document any) {
		text, err := json.Marshal(document)
		if err != nil {
			panic(err) // our own types
		}
		documents[path] = text
	}
	encode("/apis", groups)
	for groupVersion, list := range lists {
		encode(root(groupVersion), list)
	}
	return documents
}
