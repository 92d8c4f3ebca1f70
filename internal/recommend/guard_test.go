// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// guarded is all that guards look at, so that a test can name what it changes.
type guarded struct {
	Change
	Surroundings
	Progress
}

func (g *guarded) refusal() Refusal { return Guard(g.Change, g.Surroundings, g.Progress) }

// lower and raise are the recommendations guards see most.
func lower() guarded {
	return guarded{
		Change: Change{
			Proposal{Recommendation: Recommendation{
				Decision: Decrease, Size: sizeOf(300*mib, 400*mib), Evidence: Evidence{Window: 9 * day},
			}},
			Running{Current: sizeOf(800*mib, gib), Demand: 200 * mib, QoS: "Burstable"},
		},
		Surroundings: Surroundings{WindowPeak: 350 * mib},
		Progress:     Progress{Now: start, Replicas: 3},
	}
}

func raise(urgent bool) guarded {
	return guarded{
		Change: Change{
			Proposal{Recommendation: Recommendation{
				Decision: Increase, Size: sizeOf(700*mib, gib), Evidence: Evidence{Window: 9 * day}, Urgent: urgent,
			}},
			Running{Current: sizeOf(300*mib, 512*mib), Demand: 500 * mib, QoS: "Burstable"},
		},
		Progress: Progress{Now: start, Replicas: 3},
	}
}

func TestGuards(t *testing.T) {
	for name, c := range map[string]struct {
		in     guarded
		change func(*guarded)
		want   string // reason; "" passes
		says   string
	}{
		"a lower that fits": {lower(), func(*guarded) {}, "", ""},
		"a raise that fits": {raise(false), func(*guarded) {}, "", ""},
		"paused": {
			raise(true), func(in *guarded) { in.Paused = "memfit.dev/pause on Namespace shop" }, "Paused", "Namespace shop",
		},
		"a VPA owns memory": {
			raise(true), func(in *guarded) { in.Conflict = "VerticalPodAutoscaler shop/web" }, "Conflict",
			"VerticalPodAutoscaler shop/web",
		},
		"holds": {lower(), func(in *guarded) {
			in.Recommendation.Decision, in.Recommendation.Summary = Hold, "Hold: no memory samples yet"
		}, "NotEnoughEvidence", "no memory samples"},
		"lower after 5 hours": {
			lower(), func(in *guarded) { in.Recommendation.Evidence.Window = 5 * time.Hour }, "NotEnoughEvidence",
			"5 h of use",
		},
		"lower by an estimate of demand": {
			lower(), func(in *guarded) { in.Recommendation.Evidence.Estimated = true }, "NotEnoughEvidence", "not exact",
		},
		"raise by an estimate of demand": {
			raise(false), func(in *guarded) { in.Recommendation.Evidence.Estimated = true }, "", "",
		},
		"raise after 5 hours": {
			raise(false), func(in *guarded) { in.Recommendation.Evidence.Window = 5 * time.Hour }, "", "",
		},
		"keep": {lower(), func(in *guarded) { in.Recommendation.Decision = Keep }, "UpToDate", ""},
		"reverted yesterday": {
			lower(), func(in *guarded) { in.RevertedAt, in.RevertedFrom = start.Add(-day), 380*mib }, "Reverted",
			"380Mi was rolled back at 2026-03-01T00:00:00Z because it did harm; not tried again until 2026-03-08T00:00:00Z",
		},
		"reverted, but higher": {
			lower(), func(in *guarded) { in.RevertedAt, in.RevertedFrom = start.Add(-day), 200*mib }, "", "",
		},
		"cooling down": {
			raise(false), func(in *guarded) { in.LastChange = start.Add(-10 * time.Minute) }, "CoolingDown",
			"last change at 23:50:00Z; the next one waits until 00:50:00Z",
		},
		"uses more than it requests": {raise(false), func(in *guarded) {
			in.LastChange, in.Recommendation.Size.Limit = start.Add(-10*time.Minute), in.Current.Limit
		}, "", ""},
		"requests what it uses, and waits": {raise(false), func(in *guarded) {
			in.LastChange, in.Recommendation.Size.Limit, in.Demand = start.Add(-10*time.Minute), in.Current.Limit, 290*mib
		}, "CoolingDown", "last change"},
		"a kill does not wait": {
			raise(true), func(in *guarded) { in.LastChange = start.Add(-10 * time.Minute) }, "", "",
		},
		"single replica restarts": {
			lower(), func(in *guarded) { in.Replicas, in.Restarts = 1, true }, "SingleReplica", "singleReplica",
		},
		"single replica, allowed": {
			lower(), func(in *guarded) { in.Replicas, in.Restarts, in.SingleReplicaMayRestart = 1, true, true }, "", "",
		},
		"guaranteed":  {lower(), func(in *guarded) { in.QoS = "Guaranteed" }, "QoSClass", "EqualsLimit"},
		"best effort": {raise(true), func(in *guarded) { in.QoS = "BestEffort" }, "QoSClass", "OnCreate"},
		"above the LimitRange": {
			raise(false), func(in *guarded) { in.Range.Max, in.Range.Name = 800*mib, "team" }, "LimitRange",
			"800Mi in LimitRange team",
		},
		"below the LimitRange": {
			lower(), func(in *guarded) { in.Range.Min, in.Range.Name = 500*mib, "team" }, "LimitRange", "minimum of 500Mi",
		},
		"quota of limits": {
			raise(false), func(in *guarded) { in.Quota.Limits, in.Quota.Name = gib, "q" }, "ResourceQuota",
			"1.5Gi more limits.memory for 3 replicas",
		},
		"quota of requests": {
			raise(false), func(in *guarded) { in.Quota.Requests, in.Quota.Name = gib, "q" }, "ResourceQuota",
			"requests.memory",
		},
		"quota leaves nothing": {
			raise(false), func(in *guarded) { in.Quota.Limits, in.Quota.Name = 1, "q" }, "ResourceQuota",
			"quota q leaves nothing",
		},
		"the pod's sum": {
			raise(false), func(in *guarded) { in.Range.Refusal = "all containers together" }, "LimitRange",
			"all containers together",
		},
		"quota never stops less": {lower(), func(in *guarded) { in.Quota.Limits, in.Quota.Requests = 1, 1 }, "", ""},
		"used right now": {
			lower(), func(in *guarded) { in.Demand = 390 * mib }, "UsageTooHigh", "demand is 390Mi right now",
		},
		"page cache that the kubelet counts": {
			lower(), func(in *guarded) { in.Demand, in.Usage = 90*mib, 410*mib }, "UsageTooHigh",
			"410Mi right now, of which 320Mi is page cache: the kubelet refuses to resize to 400Mi",
		},
		"page cache does not matter to a fresh pod": {
			lower(), func(in *guarded) { in.Demand, in.Usage, in.Restarts = 90*mib, 410*mib, true }, "", "",
		},
		"page cache never stops a raise": {raise(false), func(in *guarded) { in.Usage = 4 * gib }, "", ""},
		"used today": {
			lower(), func(in *guarded) { in.WindowPeak = 401 * mib }, "UsageTooHigh", "401Mi within the last day",
		},
		"frozen heap": {
			lower(), func(in *guarded) { in.FrozenHeap, in.NativeOverhead = 384*mib, 60*mib }, "HeapCapFixed", "384Mi",
		},
		"frozen heap, restarts": {
			lower(), func(in *guarded) { in.FrozenHeap, in.Restarts = 384*mib, true; in.NativeOverhead = 60 * mib }, "", "",
		},
		"node too small": {raise(true), func(in *guarded) { in.NodeSize = 512 * mib }, "NodeTooSmall", "512Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.in
			c.change(&in)
			got := in.refusal()
			if got.Reason != c.want || !strings.Contains(got.Message, c.says) || (got.Message == "") != (c.want == "") {
				t.Errorf("got %q %q, want %q with %q", got.Reason, got.Message, c.want, c.says)
			}
		})
	}
}

func TestTheFirstRefusalIsTheOneSeen(t *testing.T) {
	in := lower()
	in.Paused, in.Conflict, in.Demand = "the kill switch", "HPA shop/web", 2*memory.GiB
	if reason := in.refusal().Reason; reason != "Paused" {
		t.Errorf("first refusal %q, want Paused", reason)
	}
	in.Paused = ""
	if reason := in.refusal().Reason; reason != "Conflict" {
		t.Errorf("second refusal %q, want Conflict", reason)
	}
}
