// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestUnreadableSnapshots checks that values which the schema allows, but which Go cannot parse or parses for minutes,
// do not prevent the manager from reading the other snapshots.
func TestUnreadableSnapshots(t *testing.T) {
	c := apiServer(t)
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "snapshots"}}); err != nil {
		t.Fatal(err)
	}
	const good = `{apiVersion: memfit.dev/v1alpha1, kind: MemorySnapshot, metadata: {name: good, namespace: snapshots},
		status: {cgroupVersion: v2, nodeName: a, observedTime: "2026-11-27T08:00:00Z", tier: Watch, alarm: {
			container: app, containerID: abc, demand: 100Mi, growthPerSecond: 1e3, limit: 128Mi, sequence: 1,
			time: "2026-11-27T08:00:00.000000Z", timeToLimitMilliseconds: 400}}}`
	for name, edit := range map[string][2]string{
		"good":           {},
		"no-microtime":   {"08:00:00.000000Z", "08:00:00Z"},
		"lower-case":     {`"2026-11-27T08:00:00Z"`, `"2026-11-27t08:00:00z"`},
		"slow-quantity":  {"100Mi", `"1e-999999999"`},
		"large-quantity": {"128Mi", `"1E+9.9999999"`},
	} {
		var object unstructured.Unstructured
		text := strings.Replace(good, edit[0], edit[1], 1)
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetName(name)
		if err := c.Create(t.Context(), &object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	typed, err := client.New(server.config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	var all v1alpha1.MemorySnapshotList
	began := time.Now()
	if err := typed.List(t.Context(), &all, client.InNamespace("snapshots")); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Second || len(all.Items) != 5 {
		t.Errorf("read %d snapshots in %s, want 5 within 2s", len(all.Items), took)
	}
	for i := range all.Items {
		s := &all.Items[i]
		if good := s.Name == "good"; good != (s.Status.NodeName == "a") || s.UID == "" {
			t.Errorf("%s: %+v", s.Name, s.Status)
		}
	}
}
