// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CheckpointVersion is the common version of all encodings in a MemoryCheckpoint. memfit refuses a MemoryCheckpoint of
// a newer version and reports it.
const CheckpointVersion = 1

// CheckpointContainer holds what memfit knows about one program in one container.
type CheckpointContainer struct {
	// evidence identifies the program that the history is about, as JSON written by internal/workload: its fingerprint,
	// the sizes in its pod template, and its current sizes.
	Evidence []byte `json:"evidence,omitempty"`
	// history is the container's memory history, in memfit's own encoding (internal/history).
	History []byte `json:"history"`
	// name is the container's name.
	Name string `json:"name"`
}

// MemoryCheckpointStatus is memfit's state of one workload. It is the only source of a MemoryRecommendation's status,
// so that one write records an OOM kill, and no kill is counted twice.
type MemoryCheckpointStatus struct {
	// containers holds one packed history per container name and program, the newest program of a container first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=96
	Containers []CheckpointContainer `json:"containers,omitempty"`

	// ledger is the OOM ledger with its cursors, as packed by internal/oom.
	Ledger []byte `json:"ledger,omitempty"`

	// observed holds observations besides histories (runtimes, live sets, demand, sources), as JSON written by
	// internal/workload. Like the histories, it may be minutes old.
	Observed []byte `json:"observed,omitempty"`

	// published holds the last published decisions (sizes, and the contents of Events), as JSON written by
	// internal/workload. memfit writes them to the MemoryRecommendation and never reads them from it.
	Published []byte `json:"published,omitempty"`

	// sizing is the state of changes of running pods, as JSON written by internal/rollout.
	Sizing []byte `json:"sizing,omitempty"`

	// version is the version of the encodings. If it is newer than this memfit supports, memfit reports it and does not
	// change the object.
	Version int32 `json:"version,omitempty"`
}

// MemoryCheckpoint holds memfit's state of one workload across restarts, in a binary format. kubectl memfit report
// draws the histories in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=memckpt
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MemoryCheckpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is the state.
	Status MemoryCheckpointStatus `json:"status,omitempty,omitzero"`
}

// MemoryCheckpointList is a list of MemoryCheckpoint.
//
// +kubebuilder:object:root=true
type MemoryCheckpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemoryCheckpoint `json:"items"`
}
