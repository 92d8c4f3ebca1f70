// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

// PodFields are the fields of a new pod that its plan depends on, as paths of JSON names, each with all that is below
// it; "[]" is any item of a list. It is the one list of them: the webhook's fast path reads these fields and no others,
// replicas that have them in common share an answer, and what is dropped from the cache of running pods is none of
// them. Tests hold [MakePlan], the fast path and the cache to it, leaf by leaf.
//
// Not here: what decides who governs a pod (its names, labels, annotations and owners), which package policy reads.
var PodFields = []string{
	"metadata.annotations",       // those of memfit.dev
	"spec.activeDeadlineSeconds", // by which quotas choose pods
	"spec.containers[].args",
	"spec.containers[].command",
	"spec.containers[].env",
	"spec.containers[].envFrom",
	"spec.containers[].image", // which says whether what replicas were found to run still holds
	"spec.containers[].name",
	"spec.containers[].resizePolicy",
	"spec.containers[].resources",
	"spec.containers[].restartPolicy",
	"spec.containers[].volumeMounts", // of the volumes that are read
	"spec.initContainers[].args",
	"spec.initContainers[].command",
	"spec.initContainers[].env",
	"spec.initContainers[].envFrom",
	"spec.initContainers[].image",
	"spec.initContainers[].name",
	"spec.initContainers[].resizePolicy",
	"spec.initContainers[].resources",
	"spec.initContainers[].restartPolicy",
	"spec.initContainers[].volumeMounts",
	"spec.os",
	"spec.overhead",          // which quotas count
	"spec.priorityClassName", // by which quotas choose pods
	"spec.resources",
	"spec.restartPolicy",
	"spec.volumes", // those in memory, which count against the limit
}
