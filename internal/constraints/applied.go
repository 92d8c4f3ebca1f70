// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppliesMemory reports whether an entry of a pod's managed fields is from a client that applies the pod with memory:
// by server-side apply, or by client-side apply, which leaves a copy of the manifest in an annotation.
func AppliesMemory(e *metav1.ManagedFieldsEntry) bool {
	if e.Subresource != "" || e.FieldsV1 == nil {
		return false
	}
	fields := e.FieldsV1.GetRawString()
	return strings.Contains(fields, `"f:memory"`) && (e.Operation == metav1.ManagedFieldsOperationApply ||
		strings.Contains(fields, `"f:kubectl.kubernetes.io/last-applied-configuration"`))
}

// Applier returns such an entry without its fields, for the cache.
func Applier(e *metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation}
}

// appliedBy returns the client whose manifest of a bare pod would be refused after a resize, and what to do; "": none.
func appliedBy(pod *corev1.Pod) (conflict, remedy string) {
	if pod == nil || metav1.GetControllerOfNoCopy(pod) != nil {
		return "", ""
	}
	for i := range pod.ManagedFields {
		e := &pod.ManagedFields[i]
		kept := e.Subresource == "" && e.FieldsV1 == nil && e.Manager != "" // from Applier: without fields
		if kept || AppliesMemory(e) {
			return fmt.Sprintf(
				"%s (applies this pod as a manifest that sets its memory, which the API server refuses after a resize)", e.Manager,
			), "let a controller create the pod, such as a Deployment with one replica"
		}
	}
	return "", ""
}
