// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// benchCase are the new pods of one kind of workload, in the order in which a cluster makes them.
type benchCase struct {
	name      string
	workloads []newPod
	// replicas is how many pods of a workload come one after the other, as when it is rolled out or scaled up.
	replicas int
	// made counts the pods of the whole run, over all servers and rounds: none has the same bytes as another.
	made atomic.Int64
}

// The cases.
const (
	governed   = "governed"
	ungoverned = "ungoverned"
)

// together is how many workloads are rolled out at the same time: their pods take turns.
const together = 8

// newPod is a review with holes for what no two pods of a workload share.
type newPod struct {
	text  []byte
	holes []int
}

// hole stands in a newPod where a pod has five characters of its own.
const hole = "@@@@@"

// fill appends the review of pod number n.
func (p *newPod) fill(out []byte, n int64) []byte {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // those the API server makes names of
	var own [len(hole)]byte
	for i := range own {
		own[i] = letters[n%int64(len(letters))]
		n /= int64(len(letters))
	}
	start := len(out)
	out = append(out, p.text...)
	for _, at := range p.holes {
		copy(out[start+at:], own[:])
	}
	return out
}

// order is the workload of pod i of a sequence: in groups of workloads that are rolled out together, pod by pod.
func (c *benchCase) order(i int) *newPod {
	group, within := i/(together*c.replicas), i%(together*c.replicas)
	return &c.workloads[(group*together+within%together)%len(c.workloads)]
}

// cases are pods of governed and of ungoverned workloads.
func (w *world) cases() ([]*benchCase, error) {
	var theirs, nobodys []newPod
	for n := range w.workloads {
		// A step that shares no factor with the number of workloads visits them all, in no order a processor's cache would
		// like.
		i := n * 7919 % w.workloads
		pod, err := review(i)
		if err != nil {
			return nil, err
		}
		if _, ok := w.profileOf(i); ok {
			theirs = append(theirs, pod)
		} else {
			nobodys = append(nobodys, pod)
		}
	}
	if len(theirs) == 0 || len(nobodys) == 0 {
		return nil, fmt.Errorf("%d governed and %d ungoverned workloads: both are needed", len(theirs), len(nobodys))
	}
	return []*benchCase{
		{name: governed, workloads: theirs, replicas: replicas},
		{name: ungoverned, workloads: nobodys, replicas: replicas},
	}, nil
}

// review is the AdmissionReview for a new pod of workload i.
func review(i int) (newPod, error) {
	t := template(i)
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.GenerateName = replicaSet(i) + "-"
	pod.Name = pod.GenerateName + hole
	pod.Namespace = namespace(i)
	pod.Labels["pod-template-hash"] = hash(i)
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet(i), UID: uid("r", i), Controller: new(true),
			BlockOwnerDeletion: new(true)},
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created,
		FieldsType: "FieldsV1",
		FieldsV1:   metav1.NewFieldsV1(managedFields),
	}}
	raw, err := json.Marshal(pod)
	if err != nil {
		return newPod{}, err
	}
	gvk, gvr := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, metav1.GroupVersionResource{
		Version: "v1", Resource: "pods",
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(hole + "000-1111-4000-8000-000000000000"), Kind: gvk, Resource: gvr, RequestKind: &gvk,
			RequestResource: &gvr,
			Name:            pod.Name, Namespace: pod.Namespace, Operation: admissionv1.Create, DryRun: new(false),
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:replicaset-controller", UID: "6f2b0a0e-1111-4000-8000-000000000000",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
			},
			Object:  runtime.RawExtension{Raw: raw},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	p := newPod{text: text}
	for at := 0; ; at += len(hole) {
		next := bytes.Index(text[at:], []byte(hole))
		if next < 0 {
			return p, err
		}
		at += next
		p.holes = append(p.holes, at)
	}
}

//go:embed pod.yaml
var podYAML []byte

// usual is the pod template of all workloads, but for its label app.
var usual = func() (t corev1.PodTemplateSpec) {
	if err := yaml.UnmarshalStrict(podYAML, &t); err != nil {
		panic(err) // our own file
	}
	return t
}()

// template is that of a workload.
func template(i int) corev1.PodTemplateSpec {
	t := usual.DeepCopy()
	t.Labels["app"] = workload(i)
	return *t
}

// managedFields is what the API server has noted about a pod's owner by the time it asks webhooks.
const managedFields = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"NODE_OPTIONS\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"PORT\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}`
