// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is a kind of owner whose metadata must be cached.
type Kind struct {
	GVK schema.GroupVersionKind
	// Resource is the plural, for RBAC: get, list, watch.
	Resource string
	// Passes is true when the kind's own controller, if it has one, is the workload: people edit the Deployment, not its ReplicaSets.
	Passes bool
}

// Kinds is the table of owners that need a metadata-only cache.
var Kinds = []Kind{
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, Resource: "replicasets", Passes: true},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: "deployments"},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Resource: "statefulsets"},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, Resource: "daemonsets"},
	{GVK: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Resource: "jobs", Passes: true},
	{GVK: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, Resource: "cronjobs"},
	{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}, Resource: "replicationcontrollers"},
}
