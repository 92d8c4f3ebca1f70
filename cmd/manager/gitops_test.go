// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// fromGit is the field manager of whoever applies what is in Git, as Argo CD and Flux do.
const fromGit = "git"

// applied applies a Deployment on the server's side, as it is in Git, and reads back what became of it.
func (c *cluster) applied(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	manifest := &unstructured.Unstructured{Object: tree}
	manifest.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := c.client.Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(fromGit),
	); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
}

// TestMemfitWritesNoWorkload: the profile allows all that memfit can do, it does it, and whoever applies the manifests
// from Git again changes nothing: nothing drifted, and memfit owns no field of the workload.
func TestMemfitWritesNoWorkload(t *testing.T) {
	c := newCluster(t)
	p := c.start(t)
	p.ready(t)
	pod := c.workload(t)
	profile := build.Profile("shop", "web", v1alpha1.RuntimeNodeJS)
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		t.Fatal(err)
	}
	profile.Spec.Sizing.Mode, profile.Spec.Drift.Action = v1alpha1.SizingInPlaceOrEvict, v1alpha1.DriftRestart
	if err := c.client.Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}

	deployment := build.Deployment("shop", "web", v1alpha1.ProfileAnnotation, "web")
	objects := map[string]client.Object{
		"Namespace": &corev1.Namespace{}, "ReplicaSet": &appsv1.ReplicaSet{}, "Deployment": &appsv1.Deployment{},
	}
	names := map[string]client.ObjectKey{
		"Namespace": {Name: "shop"}, "ReplicaSet": {Namespace: "shop", Name: "web-5d4f8c7b9"},
		"Deployment": client.ObjectKeyFromObject(deployment),
	}
	before := map[string]string{}
	for kind, object := range objects {
		if err := c.client.Get(t.Context(), names[kind], object); err != nil {
			t.Fatal(err)
		}
		before[kind] = object.GetResourceVersion()
	}

	c.killed(t, pod)
	eventually(t, 30*time.Second, func() error {
		var rec v1alpha1.MemoryRecommendation
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "deployment-web"}, &rec); err != nil {
			return err
		}
		if rec.Status.OOMKills != 1 || rec.Status.Limit == "" {
			return errors.New("the kill is not answered yet")
		}
		return nil
	})
	c.applied(t, deployment)

	for kind, object := range objects {
		if err := c.client.Get(t.Context(), names[kind], object); err != nil {
			t.Fatal(err)
		}
		if now := object.GetResourceVersion(); now != before[kind] {
			t.Errorf(
				"somebody wrote the %s: resourceVersion was %s and is %s; managed fields: %v", kind, before[kind], now,
				object.GetManagedFields(),
			)
		}
	}
	for _, entry := range objects["Deployment"].GetManagedFields() {
		if entry.Manager != fromGit {
			t.Errorf("%s owns fields of the Deployment: %s", entry.Manager, entry.FieldsV1)
		}
	}
}
