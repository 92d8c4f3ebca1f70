// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppliesMemory reports whether a managedFields entry of a pod is from a client that applied a manifest with memory
// values, by server-side apply, or by client-side apply, which stores the manifest in an annotation.
func AppliesMemory(e *metav1.ManagedFieldsEntry) bool {
	if e.Subresource != "" || e.FieldsV1 == nil {
		return false
	}
	fields := e.FieldsV1.GetRawString()
	return strings.Contains(fields, `"f:memory"`) && (e.Operation == metav1.ManagedFieldsOperationApply ||
		strings.Contains(fields, `"f:kubectl.kubernetes.io/last-applied-configuration"`))
}

// Applier returns an entry for which [AppliesMemory] is true without its fields, for the cache.
func Applier(e *metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation}
}

// appliedBy returns the client that applies a manifest of a bare pod, which the API server would refuse after a resize,
// and what the user should do; "": none.
func appliedBy(pod *corev1.Pod) (conflict, remedy string) {
	if pod == nil || metav1.GetControllerOfNoCopy(pod) != nil {
		return "", ""
	}
	for i := range pod.ManagedFields {
		e := &pod.ManagedFields[i]
		kept := e.Subresource == "" && e.FieldsV1 == nil && e.Manager != "" // from Applier
		if kept || AppliesMemory(e) {
			return fmt.Sprintf(
				"%s (applies this pod's manifest with memory values; the API server refuses it after a resize)", e.Manager,
			), "let a controller create the pod, such as a Deployment with one replica"
		}
	}
	return "", ""
}
