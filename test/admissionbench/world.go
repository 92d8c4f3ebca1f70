// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
)

const (
	namespaces = 100
	replicas   = 5
)

// world is a cluster as its API server would list it.
type world struct {
	workloads, profiles int
	// lists are the items of each list, by path ("/apis/apps/v1/deployments"), ready to be sent.
	lists map[string][]json.RawMessage
	// metadata are the same for those who ask for metadata only.
	metadata map[string][]json.RawMessage
}

func makeWorld(workloads, profiles int) (*world, error) {
	w := &world{
		workloads: workloads, profiles: profiles, lists: map[string][]json.RawMessage{},
		metadata: map[string][]json.RawMessage{},
	}
	for i := range namespaces {
		if err := w.add("/api/v1/namespaces", &corev1.Namespace{ObjectMeta: meta("", namespace(i), "ns", i)}); err != nil {
			return nil, err
		}
	}
	for i := range workloads {
		if err := w.addWorkload(i); err != nil {
			return nil, err
		}
	}
	for i := range profiles {
		if err := w.addResolvers(i); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) add(path string, object metav1.Object) error {
	full, err := json.Marshal(object)
	if err != nil {
		return err
	}
	w.lists[path] = append(w.lists[path], full)
	m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Annotations:     object.GetAnnotations(), Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences(),
	}}
	short, err := json.Marshal(m)
	w.metadata[path] = append(w.metadata[path], short)
	return err
}

// addWorkload adds a Deployment and its ReplicaSet. Every second one, up to the number of profiles, is governed, so
// that governed and ungoverned owners lie side by side.
func (w *world) addWorkload(i int) error {
	d := &appsv1.Deployment{ObjectMeta: meta(namespace(i), workload(i), "d", i)}
	d.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	if p, ok := w.profileOf(i); ok {
		d.Annotations[v1alpha1.ProfileAnnotation] = profileName(p)
	}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": workload(i)}},
		Template: template(i),
	}
	r := &appsv1.ReplicaSet{ObjectMeta: meta(namespace(i), replicaSet(i), "r", i)}
	r.Annotations = map[string]string{
		"deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/desired-replicas": strconv.Itoa(replicas),
	}
	r.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID, Controller: new(true),
			BlockOwnerDeletion: new(true)},
	}
	r.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(replicas)), Selector: d.Spec.Selector, Template: template(i)}
	if err := w.add("/apis/apps/v1/deployments", d); err != nil {
		return err
	}
	return w.add("/apis/apps/v1/replicasets", r)
}

// profileOf is the number of a workload's profile.
func (w *world) profileOf(i int) (int, bool) { return i / 2, i%2 == 0 && i/2 < w.profiles }

// addResolvers adds what tells memfit, and what tells VPA, to look after workload 2*p: a runtime and sizes for two
// containers.
func (w *world) addResolvers(p int) error {
	i := 2 * p
	mp := &v1alpha1.MemoryProfile{ObjectMeta: meta(namespace(i), profileName(p), "p", p)}
	mp.Generation = 1
	mp.Spec = v1alpha1.MemoryProfileSpec{
		Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20", Libc: v1alpha1.LibcAuto},
		Containers: []v1alpha1.ContainerPolicy{
			{Name: "proxy", Mode: "Managed", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}},
		},
		Tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(2))},
		Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingOnCreate},
	}
	rec := &v1alpha1.MemoryRecommendation{ObjectMeta: meta(namespace(i), "deployment-"+workload(i), "m", p)}
	rec.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: workload(i), UID: uid("d", i)},
	}
	rec.Status.Profile = v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: mp.Name}
	rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: workload(i)}
	for _, c := range []struct{ name, limit, request string }{{"app", "704Mi", "640Mi"}, {"proxy", "160Mi", "128Mi"}} {
		rec.Status.Containers = append(rec.Status.Containers, v1alpha1.ContainerRecommendation{
			Container: c.name, Decision: "Increase", Summary: "raise",
			Recommended: &v1alpha1.Size{Limit: quantity(c.limit), Request: quantity(c.request)},
			NewPods:     &v1alpha1.Size{Limit: quantity(c.limit), Request: quantity(c.request)},
		})
	}
	if err := w.add("/apis/memfit.dev/v1alpha1/memoryprofiles", mp); err != nil {
		return err
	}
	if err := w.add("/apis/memfit.dev/v1alpha1/memoryrecommendations", rec); err != nil {
		return err
	}
	const vpas = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
	w.lists[vpas] = append(
		w.lists[vpas],
		json.RawMessage(
			strings.NewReplacer(
				"NAMESPACE", namespace(i), "WORKLOAD", workload(i), "UID", string(uid("v", p)),
			).Replace(verticalPodAutoscaler),
		),
	)
	return nil
}

// verticalPodAutoscaler is as VPA's recommender leaves one: both containers, memory and CPU.
const verticalPodAutoscaler = `{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler",
"metadata":{"name":"WORKLOAD","namespace":"NAMESPACE","uid":"UID","resourceVersion":"1","creationTimestamp":"2026-11-01T08:00:00Z"},
"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"WORKLOAD"},"updatePolicy":{"updateMode":"Recreate"}},
"status":{"conditions":[{"type":"RecommendationProvided","status":"True","lastTransitionTime":"2026-11-01T08:05:00Z"}],
"recommendation":{"containerRecommendations":[
{"containerName":"app","target":{"cpu":"120m","memory":"640Mi"},"lowerBound":{"cpu":"60m","memory":"512Mi"},"upperBound":{"cpu":"300m","memory":"1Gi"},"uncappedTarget":{"cpu":"120m","memory":"640Mi"}},
{"containerName":"proxy","target":{"cpu":"25m","memory":"128Mi"},"lowerBound":{"cpu":"10m","memory":"96Mi"},"upperBound":{"cpu":"90m","memory":"256Mi"},"uncappedTarget":{"cpu":"25m","memory":"128Mi"}}]}}}`

func meta(namespace, name, kind string, i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: uid(kind, i), ResourceVersion: "1", CreationTimestamp: created,
		Labels: map[string]string{"app": name, "app.kubernetes.io/part-of": "shop", "team": "team-" + strconv.Itoa(i%20)},
	}
}

var created = metav1.Date(2026, 11, 1, 8, 0, 0, 0, metav1.Now().UTC().Location())

func namespace(i int) string   { return fmt.Sprintf("team-%02d", i%namespaces) }
func workload(i int) string    { return fmt.Sprintf("web-%05d", i) }
func replicaSet(i int) string  { return workload(i) + "-" + hash(i) }
func hash(i int) string        { return fmt.Sprintf("%010x", 0x5d1c000000+i) }
func profileName(p int) string { return fmt.Sprintf("nodejs-%05d", p) }

func uid(kind string, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%04x00000000", i, []byte(kind)[0]))
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}
