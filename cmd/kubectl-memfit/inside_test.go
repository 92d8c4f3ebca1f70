// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// inside tells what is seen of a pod before and after an agent wrote its snapshot.
func (c server) inside(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("internal/picture/testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var snapshot v1alpha1.MemorySnapshot
	if err := yaml.UnmarshalStrict(text, &snapshot); err != nil {
		t.Fatal(err)
	}
	snapshot.Namespace = "inside"
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
	pod.Name, pod.Namespace = snapshot.Name, snapshot.Namespace
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "node:20"}}
	pod.Spec.ServiceAccountName = "default"
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u", Controller: new(true)},
	}
	account := &corev1.ServiceAccount{}
	account.Name, account.Namespace = "default", pod.Namespace
	c.create(t, build.Namespace("inside"), account, pod)

	want := func(code int, in string, args ...string) {
		t.Helper()
		out, errs, got := c.run("reader", append(args, "-n", "inside")...)
		if got != code || !strings.Contains(out+errs, in) {
			t.Errorf("%q: exit %d, %q, %q; want exit %d and %q", args, got, out, errs, code, in)
		}
	}
	want(exitFailed, "on node node-1 has no snapshot: no agent runs on its node, or the pod is new", "map", pod.Name)
	want(exitFailed, "found no pod nope in namespace inside", "map", "pod/nope")
	want(exitFailed, "found no pod of deploy/web in namespace inside", "map", "deploy/web")
	want(0, "Node.js 20?", "top")
	snapshot.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	node := snapshot.Status.NodeName
	snapshot.Status.NodeName = "node-2"
	c.create(t, &snapshot)
	want(exitFailed, `is from node "node-2"`, "map", pod.Name)
	snapshot.Status.NodeName = node
	if err := c.client.Update(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}
	want(0, "A V8 heap ", "map", "pod/"+pod.Name)
	want(exitFailed, "found no pod of deploy/web in namespace inside", "why", "deploy/web")
	want(0, "glibc arenas, 64Mi: 48Mi resident", "map", pod.Name, "-c", "app", "--pages")
	want(0, "<svg ", "map", pod.Name, "-o", "svg")
	want(exitFailed, `no container "nope": name one of app, proxy, over`, "map", pod.Name, "-c", "nope")
	want(0, "app         Node.js 20.18.1   470Mi (92%)   512Mi   263Mi   100Mi", "top", "--sort-by", "free")
	want(exitFailed, "--sort-by size is unknown: use use, share", "top", "--sort-by", "size")

	for _, verb := range []string{"top", "scan", "status"} {
		if out, _, code := c.run("reader", verb, "-n", "inside", "--no-headers"); code != 0 ||
			strings.Contains(out, "CONTAINER") || (verb == "status") != (out == "") {
			t.Errorf("%s --no-headers: exit %d, %q", verb, code, out)
		}
	}
	folder := t.TempDir()
	want(
		0, "nodejs.yaml\nCheck the suggested runtimes, then: kubectl apply -R -f "+folder+"\n", "scan", "--write",
		folder,
	)
	if _, errs, _ := c.run("reader", "scan", "-n", "inside", "--write", folder); strings.Contains(errs, "kubectl apply") ||
		!strings.Contains(errs, "nodejs.yaml: the file exists") {
		t.Errorf("nothing is written again: %q", errs)
	}
	written, err := os.ReadFile(filepath.Join(folder, "inside", "nodejs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var profile v1alpha1.MemoryProfile
	if err := yaml.UnmarshalStrict(written, &profile); err != nil {
		t.Fatal(err)
	}
	c.create(t, &profile) // the API server takes it
}

// finished asks about a workload whose pods do not exist any more.
func (c server) finished(t *testing.T) {
	t.Helper()
	c.recommend(t, documents(t, "internal/report/testdata/finished.yaml")[0])
	for _, name := range []string{
		"tekton: build/unit", "tekton-build-unit-4b2f", "pod/build-x7k2p-unit-pod", // which was killed
	} {
		out, errs, code := c.run("reader", "why", name, "-n", "shop")
		if code != 0 || !strings.HasPrefix(out, "tekton: build/unit in namespace shop\n") ||
			!strings.Contains(out, "MainProcess at limit 256Mi") ||
			!strings.Contains(errs, "warning: showing only the recommendation: found no pod") {
			t.Errorf("why %q: exit %d, %q,\n%s", name, code, errs, out)
		}
		fields, _, code := c.run("reader", "why", name, "-n", "shop", "-o", "jsonpath={.workload.status.oomKills}{.seen}")
		if code != 0 || fields != "3\n" {
			t.Errorf("why %q for machines: exit %d, %q", name, code, fields)
		}
	}
	if err := c.client.DeleteAllOf(
		t.Context(), &v1alpha1.MemoryRecommendation{}, client.InNamespace("shop"), client.MatchingFields{
			"metadata.name": "tekton-build-unit-4b2f",
		},
	); err != nil {
		t.Fatal(err)
	}
}
