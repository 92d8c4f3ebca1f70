// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloadkind is the table of the kinds that create pods: their names, the paths of their pod templates, and
// their properties. It performs no I/O.
package workloadkind

import (
	"slices"
	"strings"
)

// Kind is a kind with pods.
type Kind struct {
	// Group, Version and Name are as in the API, Resource is its plural, as in RBAC.
	Group, Version, Name, Resource string
	// Template is the path to its pod template; empty for a Pod.
	Template []string
	// PodCount is the path to the desired number of pods; empty: none, or memfit has no permission to read it.
	PodCount  []string
	Restarts  bool // kubectl rollout restart replaces its pods
	Recreates bool // a controller replaces deleted pods
	// Completes is true if its pods run to completion. An evicted pod loses its work, so memfit sizes only the next run.
	Completes bool
	// PerNode is true if its controller determines the node of each pod, so its pods may be divided by classes of nodes.
	PerNode bool
	// Watched is true if memfit caches the metadata of all objects of this kind, to find the owner of a pod.
	Watched bool
	// Intermediate is true if controllers create such objects, and their own controller, if any, is the workload. Other
	// kinds have the pod template that users edit, so the search for the owner ends there, even if an operator owns them:
	// one Kafka resource has several StatefulSets, whose containers must not share a recommendation.
	Intermediate bool
	TakesProfile bool // users annotate objects of this kind with a profile
	PodNames     PodNames
	HashLabel    string // the pod label with the hash in the names of its ReplicaSets ("<name>-<hash>")
	HasHash      bool   // objects of this kind have the HashLabel of their owner
	// MergedByName is true if a patch merges its containers by name. In custom resources, a patch replaces the list.
	MergedByName bool
	Frozen       bool // the template of an existing object is immutable
	// Queued is true if queue controllers such as Kueue suspend such objects until resources for their pods are reserved.
	Queued bool

	short string
}

// PodNames is how a workload's pods are named after it.
type PodNames int

// Naming schemes of pods.
const (
	UnknownNames       PodNames = iota
	SameName                    // the workload is the pod
	Ordinal                     // "<name>-0"
	Generated                   // "<name>-x7x2p"
	GeneratedWithHash           // "<name>-6d4cf56db6-x7x2p", created by a ReplicaSet
	GeneratedWithIndex          // "<name>-x7x2p", or "<name>-3-x7x2p" for an indexed Job
	GeneratedWithTime           // as GeneratedWithIndex, of a Job "<name>-29384120" (minutes since 1970)
)

var (
	inSpec   = []string{"spec", "template"}
	replicas = []string{"spec", "replicas"}
)

// table lists the most frequent kinds first, because memfit looks up the owner of every new pod.
var table = []Kind{
	{
		Group: "apps", Version: "v1", Name: "ReplicaSet", Resource: "replicasets", short: "rs",
		Template: inSpec, PodCount: replicas, MergedByName: true, Recreates: true, PodNames: Generated,
		Watched: true, Intermediate: true, HasHash: true, // owned by a Deployment, an Argo Rollout, ... or written by hand
	},
	{
		Group: "apps", Version: "v1", Name: "Deployment", Resource: "deployments", short: "deploy",
		Template: inSpec, PodCount: replicas, MergedByName: true,
		Recreates: true, Restarts: true, PodNames: GeneratedWithHash, Watched: true, TakesProfile: true,
		HashLabel: "pod-template-hash", // since Kubernetes 1.2
	},
	{
		Group: "apps", Version: "v1", Name: "StatefulSet", Resource: "statefulsets", short: "sts",
		Template: inSpec, PodCount: replicas, MergedByName: true,
		Recreates: true, Restarts: true, PodNames: Ordinal, Watched: true, TakesProfile: true,
	},
	{
		Group: "apps", Version: "v1", Name: "DaemonSet", Resource: "daemonsets", short: "ds",
		Template: inSpec, PodCount: []string{"status", "desiredNumberScheduled"}, MergedByName: true,
		Recreates: true, Restarts: true, PodNames: Generated, Watched: true, TakesProfile: true, PerNode: true,
	},
	{
		Group: "batch", Version: "v1", Name: "Job", Resource: "jobs",
		Template: inSpec, Frozen: true, MergedByName: true, Queued: true,
		Recreates: true, Completes: true, PodNames: GeneratedWithIndex, TakesProfile: true,
		Watched: true, Intermediate: true, // owned by a CronJob, a JobSet, ... or written by hand
	},
	{
		Group: "batch", Version: "v1", Name: "CronJob", Resource: "cronjobs", short: "cj",
		MergedByName: true, Template: []string{"spec", "jobTemplate", "spec", "template"},
		Recreates: true, Completes: true, PodNames: GeneratedWithTime, Watched: true, TakesProfile: true,
	},
	{
		Version: "v1", Name: "ReplicationController", Resource: "replicationcontrollers", short: "rc",
		Template: inSpec, PodCount: replicas, MergedByName: true, Recreates: true, PodNames: Generated,
		Watched: true, // DeploymentConfigs own theirs, but only OpenShift has them
	},
	{Version: "v1", Name: "Pod", Resource: "pods", short: "po", MergedByName: true, PodNames: SameName},
	{Version: "v1", Name: "PodTemplate", Resource: "podtemplates", Template: []string{"template"}, MergedByName: true},
	{
		Group: "argoproj.io", Version: "v1alpha1", Name: "Rollout", Resource: "rollouts", short: "ro",
		Template: inSpec, Recreates: true, PodNames: GeneratedWithHash,
		HashLabel: "rollouts-pod-template-hash", // not a Deployment's, so that the two are never confused
	},
}

// All returns the table. Callers must not change it.
func All() []Kind { return table }

// Of finds a kind in any version; false: it is not in the table, and memfit does not know where its pod template is.
func Of(apiVersion, kind string) (Kind, bool) {
	if k := InGroup(Group(apiVersion), kind); k != nil {
		return *k, true
	}
	return Kind{}, false
}

// InGroup finds a kind by its API group; nil if it is not in the table.
func InGroup(group, kind string) *Kind {
	for i := range table {
		if table[i].Name == kind && table[i].Group == group {
			return &table[i]
		}
	}
	return nil
}

// Recorded reports whether memfit reads objects of this kind, so that a record's name needs no group.
func (k *Kind) Recorded() bool { return k.Watched || k.PodNames == SameName }

// Queued returns the kind with that plural if queue controllers can hold back its objects; otherwise false.
func Queued(resource string) (Kind, bool) {
	i := slices.IndexFunc(table, func(k Kind) bool { return k.Queued && k.Resource == resource })
	if i < 0 {
		return Kind{}, false
	}
	return table[i], true
}

// Like returns the behavior of a kind: its row in the table, or for example for Volcano's Jobs the row with the same
// name in another group. Any other kind is assumed to recreate its pods.
func Like(apiVersion, kind string) Kind {
	if k, found := Of(apiVersion, kind); found {
		return k
	}
	behavior := Kind{Recreates: true, Completes: IsIdentity(apiVersion, kind)}
	if i := slices.IndexFunc(table, func(k Kind) bool { return k.Name == kind }); i >= 0 {
		like := table[i]
		behavior = Kind{
			Recreates: like.Recreates, Completes: like.Completes, PodNames: like.PodNames, HasHash: like.HasHash,
			PerNode: like.PerNode,
		}
	}
	return behavior
}

// Identities of pods (package identity) have no workload object; their records use these names.
const (
	IdentityAPIVersion = "memfit.dev/v1alpha1"
	IdentityKind       = "PodIdentity"
)

// IsIdentity reports whether a workload is an identity of pods instead of an owner.
func IsIdentity(apiVersion, kind string) bool {
	return kind == IdentityKind && Group(apiVersion) == Group(IdentityAPIVersion)
}

// Lasting reports whether objects of a kind keep creating pods. A failed Job or an unknown owner may create none.
func Lasting(apiVersion, kind string) bool {
	k, known := Of(apiVersion, kind)
	return known && k.Recreates && !k.Frozen
}

// PerNode reports whether pods of a kind may be split by node class.
func PerNode(apiVersion, kind string) bool {
	k, _ := Of(apiVersion, kind)
	return k.PerNode
}

// OnEachNode returns the kind whose pods may be split by node class.
func OnEachNode() Kind { return table[slices.IndexFunc(table, func(k Kind) bool { return k.PerNode })] }

// Pod returns the kind whose objects are pods without an owner.
func Pod() Kind {
	return table[slices.IndexFunc(table, func(k Kind) bool { return k.PodNames == SameName })]
}

// IsPod reports whether a workload is a pod without an owner.
func IsPod(apiVersion, kind string) bool {
	k, found := Of(apiVersion, kind)
	return found && k.PodNames == SameName
}

// APIVersion returns group and version as in manifests and references.
func (k *Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Group returns the API group of an apiVersion, empty for the core group.
func Group(apiVersion string) string {
	if group, _, found := strings.Cut(apiVersion, "/"); found {
		return group
	}
	return ""
}

// Called reports whether typed names this kind, in any form that kubectl accepts: "Deployment", "deployments",
// "deploy", "deployment.apps".
func Called(apiVersion, kind, typed string) bool {
	name, group, grouped := strings.Cut(strings.ToLower(typed), ".")
	if grouped && group != Group(apiVersion) && !strings.HasSuffix(group, "."+Group(apiVersion)) {
		return false
	}
	singular := strings.ToLower(kind)
	names := []string{singular, singular + "s"}
	if k, ok := Of(apiVersion, kind); ok && k.short != "" {
		names = append(names, k.short)
	}
	return slices.Contains(names, name)
}

// Resource returns a workload as kubectl -o name prints it: "deployment.apps/web", "pod/debug".
func Resource(apiVersion, kind, name string) string {
	if group := Group(apiVersion); group != "" {
		kind += "." + group
	}
	return Typed(kind, name)
}

// Typed returns a workload as kubectl accepts it: "deployment/web".
func Typed(kind, name string) string { return strings.ToLower(kind) + "/" + name }
