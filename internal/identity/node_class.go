// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// ByNode is the platform of an identity that consists of a DaemonSet and a class of nodes.
const ByNode = "nodeclass"

// InClass returns a DaemonSet's workload for one class of nodes, and its identity. The class is the value of a label of
// the pod's node. Without a value, and for other workloads, it returns the whole workload, and nil.
func InClass(w memory.WorkloadRef, label, value string) (memory.WorkloadRef, *Identity) {
	w = w.Whole()
	if label == "" || value == "" || !workloadkind.PerNode(w.APIVersion, w.Kind) {
		return w, nil
	}
	w.NodeClass = value
	return w, &Identity{Platform: ByNode, Values: []string{w.Name, value}, Keys: []string{label}}
}

// NodeClassOf returns the class of nodes of an identity with this platform and values; empty: none.
func NodeClassOf(platform string, values []string) string {
	if platform != ByNode || len(values) != 2 {
		return ""
	}
	return values[1]
}

// OnNodes appends a class of nodes to a name, unless it is empty: "daemonset/log [m5.large]".
func OnNodes(name, class string) string {
	if class == "" {
		return name
	}
	return name + " [" + class + "]"
}

// ClassName returns the name of the records of a workload in a class of nodes:
// "nodeclass-log-m5-large-4b2f8a9c01d2e3f4".
func ClassName(w memory.WorkloadRef) string {
	id := Identity{Platform: ByNode, Values: []string{w.Name, w.NodeClass}, Keys: []string{w.APIVersion, w.Kind}}
	return id.Ref(w.Namespace).Name
}

// NodeOf returns the node to which a pod is scheduled or, as a DaemonSet's pod, bound by node affinity; empty: unknown.
func NodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	node := ""
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		named := namedIn(term.MatchFields)
		if named == "" || node != "" && named != node { // terms are alternatives
			return ""
		}
		node = named
	}
	return node
}

// namedIn returns the name of the only node that the fields can match; empty: several may match.
func namedIn(fields []corev1.NodeSelectorRequirement) string {
	for _, f := range fields {
		if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
			return f.Values[0]
		}
	}
	return ""
}

// PinnedTo returns an affinity that allows only one node; nil if node is empty.
func PinnedTo(node string) *corev1.Affinity {
	if node == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}}}},
		},
	}}
}
