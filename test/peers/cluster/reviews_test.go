// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/test/build"
)

// benchCase are the new pods of one kind of workload, in the order in which a cluster creates them.
type benchCase struct {
	name string
	// reviews has the AdmissionReview of a pod of each workload, with placeholders for the parts that differ by pod.
	reviews [][]byte
	// made counts the pods of the whole run, over all servers and rounds: no two have the same bytes.
	made atomic.Int64
}

// The cases.
const (
	governed   = "governed"
	ungoverned = "ungoverned"
)

const (
	// replicasInTurn is how many pods of a workload are created when it is rolled out.
	replicasInTurn = 5
	// concurrentRollouts is how many workloads are rolled out at the same time: their pods alternate.
	concurrentRollouts = 8
)

// next returns the review of the next pod: workloads are rolled out in groups, pod by pod.
func (c *benchCase) next() []byte {
	n := c.made.Add(1)
	group, within := int(n)/(concurrentRollouts*replicasInTurn), int(n)%(concurrentRollouts*replicasInTurn)
	review := c.reviews[(group*concurrentRollouts+within%concurrentRollouts)%len(c.reviews)]
	const letters = "bcdfghjklmnpqrstvwxz2456789" // of generated names, as in the API server
	var own [len(placeholder)]byte
	for i := range own {
		own[i] = letters[n%int64(len(letters))]
		n /= int64(len(letters))
	}
	return bytes.ReplaceAll(review, []byte(placeholder), own[:])
}

// placeholder is replaced by five characters that differ by pod.
const placeholder = "@@@@@"

// review returns the AdmissionReview of a new pod of a ReplicaSet.
func review(set *appsv1.ReplicaSet) ([]byte, error) {
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(),
		Spec: set.Spec.Template.Spec,
	}
	pod.GenerateName = set.Name + "-"
	pod.Namespace, pod.Name = set.Namespace, pod.GenerateName+placeholder
	pod.OwnerReferences = []metav1.OwnerReference{build.ControllerRef(set, "apps/v1", "ReplicaSet")}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Time: &set.CreationTimestamp, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.TrimSpace(managedFields)),
	}}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(placeholder + "000-1111-4000-8000-000000000000"), Kind: kind, Resource: resource, RequestKind: &kind,
			RequestResource: &resource,
			Name:            pod.Name, Namespace: pod.Namespace, Operation: admissionv1.Create, DryRun: new(false),
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:replicaset-controller", UID: "6f2b0a0e-1111-4000-8000-000000000000",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
			},
			Object:  runtime.RawExtension{Raw: raw},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
}

//go:embed pod.yaml
var podYAML []byte

// podTemplate is the pod template of all workloads, except for its labels.
var podTemplate = func() (t corev1.PodTemplateSpec) {
	if err := yaml.UnmarshalStrict(podYAML, &t); err != nil {
		panic(err) // our own file
	}
	return t
}()

// managedFields are a pod's managed fields when the API server calls webhooks.
//
//go:embed managed_fields.json
var managedFields string
