// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workloadkind

import (
	"slices"
	"strings"
)

// Kind is a kind that has pods.
type Kind struct {
	// Template is the path to the template of its pods; empty for a Pod, which is its own.
	Template []string
	// Restarts: kubectl rollout restart replaces its pods.
	Restarts bool
	// ByName: the API server and kustomize merge its containers by name. The schema of a custom resource says nothing of the sort, so
	// that a merged list of containers would replace the whole list.
	ByName bool
	// Frozen: the template of an object that exists cannot be changed.
	Frozen bool

	short string
}

var table = map[string]Kind{
	"/Pod":                   {ByName: true, short: "po"},
	"/PodTemplate":           {ByName: true, Template: []string{"template"}},
	"/ReplicationController": {ByName: true, Template: template, short: "rc"},
	"apps/Deployment":        {ByName: true, Template: template, Restarts: true, short: "deploy"},
	"apps/StatefulSet":       {ByName: true, Template: template, Restarts: true, short: "sts"},
	"apps/DaemonSet":         {ByName: true, Template: template, Restarts: true, short: "ds"},
	"apps/ReplicaSet":        {ByName: true, Template: template, short: "rs"},
	"batch/Job":              {ByName: true, Template: template, Frozen: true},
	"batch/CronJob":          {ByName: true, Template: []string{"spec", "jobTemplate", "spec", "template"}, short: "cj"},
	"argoproj.io/Rollout":    {Template: template, short: "ro"},
}

var template = []string{"spec", "template"}

// Of finds a kind. False: memfit does not know where objects of this kind keep the template of their pods.
func Of(apiVersion, kind string) (Kind, bool) {
	k, ok := table[Group(apiVersion)+"/"+kind]
	return k, ok
}

// Group is the API group of an apiVersion, empty for the core group.
func Group(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Called tells whether people mean this kind when they type a name as kubectl takes it: "Deployment", "deployments", "deploy",
// "deployment.apps".
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
