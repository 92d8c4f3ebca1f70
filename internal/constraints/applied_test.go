// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
)

func TestWhoAppliesABarePod(t *testing.T) {
	const (
		image  = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}`
		sized  = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:resources":{"f:limits":{"f:memory":{}}}}}}}`
		copied = `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}},` +
			`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:resources":{"f:limits":{"f:memory":{}}}}}}}`
	)
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	bare := memory.WorkloadRef{Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		controlled  bool
		operation   metav1.ManagedFieldsOperationType
		subresource string
		fields      string
		conflict    bool
	}{
		"applied with its memory":        {false, apply, "", sized, true},
		"applied without":                {false, apply, "", image, false},
		"applied by the client":          {false, update, "", copied, true},
		"created by one who writes once": {false, update, "", sized, false},
		"resized by somebody":            {false, apply, "resize", sized, false},
		"made by a controller":           {true, apply, "", sized, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if tc.controlled {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}}
			}
			pod.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "kubelet", Operation: update, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
				{
					Manager: "argocd-controller", Operation: tc.operation, Subresource: tc.subresource,
					FieldsV1: metav1.NewFieldsV1(tc.fields),
				},
			}
			f := FactsOf(bare, []string{"app"}, pod, Objects{})
			if !tc.conflict {
				if f.Conflict != "" || f.Remedy != "" {
					t.Errorf("conflict %q, remedy %q; want none", f.Conflict, f.Remedy)
				}
				return
			}
			if !strings.HasPrefix(f.Conflict, "argocd-controller (") || !strings.Contains(f.Remedy, "Deployment") {
				t.Errorf("conflict %q, remedy %q; want them to name argocd-controller and a way out", f.Conflict, f.Remedy)
			}
			pod.ManagedFields = []metav1.ManagedFieldsEntry{Applier(&pod.ManagedFields[1])}
			if slim := FactsOf(bare, []string{"app"}, pod, Objects{}); slim.Conflict != f.Conflict {
				t.Errorf("without the fields: %q, want %q", slim.Conflict, f.Conflict)
			}
		})
	}
	if f := FactsOf(bare, nil, nil, Objects{}); f.Conflict != "" {
		t.Errorf("without a pod: %q", f.Conflict)
	}
}
