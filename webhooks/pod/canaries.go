// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
)

// Canaries stores which canary permissions this replica has used: one pod of a workload gets a lower limit first. The
// leader names the replica that may create it, so that two replicas do not both create one. A nil Canaries allows none.
type Canaries struct {
	// Replica is the name of this replica's pod.
	Replica string

	mu   sync.Mutex
	used map[types.UID]int64
}

// maxUsed bounds the entries, by the UID of a recommendation. Beyond it this replica creates no canary.
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

// plan makes the canary's plan for a pod if it is the first to ask and runs the program of the recommended size;
// otherwise any other pod's plan. seen: memfit has changed the pod before, and is called again because another webhook
// has changed it since; a canary then remains one, without another permission.
func (c *Canaries) plan(in inject.Input, rec *v1alpha1.MemoryRecommendation, seen, dryRun bool) inject.Plan {
	others, allowed := inject.MakePlan(in), !dryRun && c.allowed(rec)
	if !seen && !allowed {
		return others
	}
	in.Sizes = inject.CanariesIn(rec.Status.Containers)
	canary, asItIs := inject.MakePlan(in), inject.Plan{}
	unchanged := seen && differ(rec, others, asItIs) && !differ(rec, canary, asItIs)
	if unchanged || allowed && differ(rec, canary, others) && c.use(rec) {
		return canary
	}
	return others
}

// differ reports whether two plans give some container different limits.
func differ(rec *v1alpha1.MemoryRecommendation, plan, than inject.Plan) bool {
	for i := range rec.Status.Containers {
		name := rec.Status.Containers[i].Container
		a, b := plan.Edit(name).Memory, than.Edit(name).Memory
		if a != nil && (b == nil || a.Limit != b.Limit) {
			return true
		}
	}
	return false
}

// use takes a permission; false if another pod has taken it.
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
