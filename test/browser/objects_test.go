// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// cluster is an API server for the lists that the plugin reads.
type cluster struct {
	*httptest.Server
	lists map[string][]any // by resource
}

// newCluster serves the golden objects of the plugin's tests, which have one of each problem, with times just before
// now, and histories for some of them.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	now := time.Now()
	c := &cluster{lists: map[string][]any{
		"pods": {
			pod("web-1", "Deployment", "web"), pod("web-2", "Deployment", "web"), pod("orders-0", "StatefulSet", "orders"),
			resized("orders-1", "StatefulSet", "orders"),
		},
		"memoryrecommendations": nil, "memorycheckpoints": nil, "memoryprofiles": nil, "clustermemoryprofiles": nil,
	}}
	for _, rec := range recommendations(t, now) {
		c.lists["memoryrecommendations"] = append(c.lists["memoryrecommendations"], rec)
	}
	for name, use := range map[string]func(time.Duration) memory.Bytes{
		"shop/deployment-web/app":                    bursts,
		"shop/deployment-" + longest + "/" + longest: bursts,
		"shop/statefulset-orders/app":                climbs,
		"shop/cronjob-report/job":                    flat,
	} {
		path := strings.Split(name, "/")
		one := checkpoint(t, path[0], path[1], path[2], now, use)
		c.lists["memorycheckpoints"] = append(c.lists["memorycheckpoints"], one)
	}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP answers a list.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(r.URL.Path, "/")
	items, known := c.lists[path[len(path)-1]]
	w.Header().Set("Content-Type", "application/json")
	if !known {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound, Message: r.URL.Path + " not found",
		})
		return
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if path[len(path)-1] == "pods" { // the plugin reads typed objects, which need the kind of their list
		list["kind"] = "PodList"
	}
	_ = json.NewEncoder(w).Encode(list)
}

// kubeconfig writes a kubeconfig with the cluster as production, and returns its path.
func (c *cluster) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.ReplaceAll(`apiVersion: v1
kind: Config
current-context: production
clusters: [{name: production, cluster: {server: "URL"}}]
users: [{name: me, user: {}}]
contexts: [{name: production, context: {cluster: production, user: me, namespace: shop}}]
`, "URL", c.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// longest is a name of the maximum length.
const longest = "checkout-gateway-for-every-country-that-has-its-own-tax-office1"

func recommendations(t *testing.T, now time.Time) []*v1alpha1.MemoryRecommendation {
	t.Helper()
	text, err := os.ReadFile("../../cmd/kubectl-memfit/internal/report/testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []*v1alpha1.MemoryRecommendation
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var rec v1alpha1.MemoryRecommendation
		if err := yaml.Unmarshal([]byte(document), &rec); err != nil {
			t.Fatal(err)
		}
		makeRecent(&rec.Status, now)
		all = append(all, &rec)
	}
	// Once a pod is resized, the owner's values are only in the status.
	orders := slices.IndexFunc(all, func(r *v1alpha1.MemoryRecommendation) bool { return r.Name == "statefulset-orders" })
	all[orders].Status.Containers[0].Owner = &v1alpha1.Size{Request: quantity("1Gi")}
	web := slices.IndexFunc(all, func(r *v1alpha1.MemoryRecommendation) bool { return r.Name == "deployment-web" })
	all[web].Status.RecentStalls = []v1alpha1.StallRecord{{
		Container: "app", Pod: "web-6d4c-x7x2p", Limit: resource.MustParse("256Mi"),
		Time: metav1.NewTime(now.Add(-20 * time.Hour)), Summary: "Container app stalled at its limit",
	}}
	all[web].Status.Stalls = 1
	long := all[web].DeepCopy() // without problems, and with the longest names
	long.Name, long.Status.Workload.Name, long.Status.Profile.Name = "deployment-"+longest, longest, longest
	s := &long.Status
	s.OOMKills, s.Stalls, s.RecentOOMKills, s.RecentStalls, s.Conditions = 0, 0, nil, nil, nil
	s.Containers[0].Container, s.Containers[0].OOMKills = longest, 0
	s.Containers[0].Recommended = &v1alpha1.Size{Limit: quantity("256Mi"), Request: quantity("120Mi")}
	s.Summary = "Decrease request 128Mi to 120Mi"
	return append(all, long)
}

// pod returns a pod with a request of 128Mi by memfit instead of the owner's 512Mi. It is created now, after every kill
// of its workload.
func pod(name, kind, of string) map[string]any {
	controller := true
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: of, Controller: &controller}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"namespace": "shop", "name": name, "ownerReferences": []any{owner}, "creationTimestamp": metav1.Now(),
			"annotations": map[string]any{
				v1alpha1.InjectedAnnotation: `{"v":1,"containers":{"app":{"size":{"request":"128Mi","wasRequest":"512Mi"}}}}`,
			},
		},
		"spec": containers("128Mi"),
	}
}

// resized returns a running pod that memfit has resized to 800Mi.
func resized(name, kind, of string) map[string]any {
	p := pod(name, kind, of)
	p["spec"] = containers("800Mi")
	metadata := p["metadata"].(map[string]any)
	delete(metadata, "annotations")
	metadata["managedFields"] = []any{map[string]any{
		"manager": "memfit", "operation": "Update", "subresource": "resize", "time": "2026-11-20T16:00:00Z",
	}}
	return p
}

// containers returns the spec of a pod whose only container has a request.
func containers(request string) map[string]any {
	return map[string]any{"containers": []any{map[string]any{
		"name": "app", "resources": map[string]any{"requests": map[string]any{"memory": request}},
	}}}
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// makeRecent moves all times of a status by the same duration, to just before now.
func makeRecent(s *v1alpha1.MemoryRecommendationStatus, now time.Time) {
	by := now.Sub(time.Date(2026, 11, 20, 16, 10, 0, 0, time.UTC))
	move := func(at *metav1.Time) { at.Time = at.Add(by) }
	for i := range s.RecentChanges {
		move(&s.RecentChanges[i].Time)
		if s.RecentChanges[i].Since != nil {
			move(s.RecentChanges[i].Since)
		}
	}
	for i := range s.RecentOOMKills {
		move(&s.RecentOOMKills[i].Time)
	}
	for i := range s.Conditions {
		move(&s.Conditions[i].LastTransitionTime)
	}
}

// Functions of the memory in use at a time before now.

func bursts(ago time.Duration) memory.Bytes {
	if h := int(ago.Hours()); h%24 == 5 || h%7 == 3 {
		return 214 * memory.MiB
	}
	return 98 * memory.MiB
}

func climbs(ago time.Duration) memory.Bytes {
	return (990 - 12*memory.Bytes(ago.Hours())/24) * memory.MiB
}

func flat(time.Duration) memory.Bytes { return 250 * memory.MiB }

func checkpoint(
	t *testing.T, namespace, name, container string, now time.Time, use func(time.Duration) memory.Bytes,
) *v1alpha1.MemoryCheckpoint {
	t.Helper()
	h := history.New()
	ref := memory.ContainerRef{Namespace: namespace, Pod: name + "-1", UID: "u", Container: container}
	for ago := 30 * 24 * time.Hour; ago > 0; ago -= 20 * time.Minute {
		b := use(ago)
		h.Add(memory.Sample{
			Container: ref, Time: now.Add(-ago), RSS: b, HasRSS: true, Exact: true, WorkingSet: b,
		}, 1200*memory.MiB)
	}
	packed, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var c v1alpha1.MemoryCheckpoint
	c.Namespace, c.Name = namespace, name
	c.Status.Version = v1alpha1.CheckpointVersion
	c.Status.Containers = []v1alpha1.CheckpointContainer{{Name: container, History: packed}}
	return &c
}
