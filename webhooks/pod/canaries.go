// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
)

// Canaries stores which canary permissions this replica has used. A canary is the pod of a workload that gets a lower
// limit first. The leader names the replica that may create it, so that only one does. A nil Canaries allows none.
type Canaries struct {
	// Replica is the name of this replica's pod.
	Replica string

	mu   sync.Mutex
	used map[types.UID]int64 // last used permission, by the recommendation's UID
}

// maxUsed limits the entries of used. At the maximum, this replica creates no canaries of further workloads.
const maxUsed = 10_000

// allowed reports whether the next pod of the workload may be its canary.
func (c *Canaries) allowed(rec *v1alpha1.MemoryRecommendation) bool {
	permit := rec.Status.Canary
	if c == nil || permit == nil || permit.Replica != "" && permit.Replica != c.Replica {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used[rec.UID] < permit.Number
}

// plan returns a plan that makes the pod a canary if an unused permission allows it and the pod runs the program that
// the recommended size is for; otherwise the plan of any other pod. seen is true if the API server calls memfit again
// for a pod, because another webhook has changed it: a canary then remains a canary without another permission.
func (c *Canaries) plan(in inject.Input, rec *v1alpha1.MemoryRecommendation, seen, dryRun bool) inject.Plan {
	others, allowed := inject.MakePlan(in), !dryRun && c.allowed(rec)
	if !seen && !allowed {
		return others
	}
	in.Sizes = inject.CanariesIn(rec.Status.Containers)
	canary, noChange := inject.MakePlan(in), inject.Plan{}
	isCanary := seen && differ(rec, others, noChange) && !differ(rec, canary, noChange)
	if isCanary || allowed && differ(rec, canary, others) && c.use(rec) {
		return canary
	}
	return others
}

// differ reports whether plan sets a container's limit, but other does not set the limit to this value.
func differ(rec *v1alpha1.MemoryRecommendation, plan, other inject.Plan) bool {
	for i := range rec.Status.Containers {
		name := rec.Status.Containers[i].Container
		a, b := plan.Edit(name).Memory, other.Edit(name).Memory
		if a != nil && (b == nil || a.Limit != b.Limit) {
			return true
		}
	}
	return false
}

// use records that a permission is used. It returns false if the permission was used already, or at maxUsed.
func (c *Canaries) use(rec *v1alpha1.MemoryRecommendation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := rec.Status.Canary.Number
	if c.used == nil {
		c.used = map[types.UID]int64{}
	}
	if _, known := c.used[rec.UID]; c.used[rec.UID] >= number || !known && len(c.used) >= maxUsed {
		return false
	}
	c.used[rec.UID] = number
	return true
}
