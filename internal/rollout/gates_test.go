// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// gated is a change of a pod's only container, and what gates decide about it by.
type gated struct {
	d    decider
	want Desired
	pod  Pod
	c    Container
	to   memory.Size
	// alone: it is the only replica, and not one of three.
	alone bool
}

func (g *gated) verdict(evict bool) Verdict {
	g.pod.Containers = []Container{g.c}
	g.d.Pods, g.d.pods = []Pod{g.pod}, map[types.UID]*Pod{"uid-1": &g.pod, "uid-2": {}, "uid-3": {}}
	if g.alone {
		g.d.pods = map[types.UID]*Pod{"uid-1": &g.pod}
	}
	g.d.Desired = map[Key]Desired{g.c.Key(): g.want}
	ch := g.d.changeOf(&g.pod, g.c, g.to, evict)
	g.d.allow(ch)
	v, _ := g.d.refusal(ch)
	return v
}

func gatedAt(from, to memory.Size, demand, peak memory.Bytes) gated {
	return gated{
		d: decider{Input: Input{Now: start, Policy: ownersDefaults()}},
		want: Desired{
			Recommendation: recommend.Recommendation{Evidence: recommend.Evidence{Window: 9 * 24 * time.Hour}},
			Policy:         ownersSizes(),
			WindowPeak:     peak,
		},
		pod: Pod{Name: "web-1", UID: "uid-1", Ready: true, QoS: "Burstable"},
		c: Container{
			Name: "app", Spec: from, Actual: from, Demand: demand, Measured: start, Started: start.Add(-time.Hour),
		},
		to: to,
	}
}

// rolledBack is a limit that did harm a while ago.
func (g *gated) rolledBack(ago time.Duration, tried, restored memory.Bytes) {
	g.d.State.Reverts = []Revert{{
		Container: "app", At: start.Add(-ago), Tried: size(0, tried), Restored: size(0, restored),
	}}
}

// lower and raise are the changes gates see most.
func lower() gated {
	return gatedAt(size(800*mib, 1024*mib), size(300*mib, 400*mib), 200*mib, 350*mib)
}

func raise(urgent bool) gated {
	g := gatedAt(size(300*mib, 512*mib), size(700*mib, 1024*mib), 500*mib, 0)
	g.want.Recommendation.Urgent = urgent
	return g
}

// requestOnly raises only the request, which restarts a container with RestartContainer as a limit does.
func requestOnly() gated {
	return gatedAt(size(95*mib, 1332*mib), size(812*mib, 1332*mib), 0, 0)
}

func size(request, limit memory.Bytes) memory.Size {
	return memory.Size{Request: request, Limit: limit}
}

func TestGates(t *testing.T) {
	for name, c := range map[string]struct {
		in     gated
		change func(*gated)
		want   string // reason; "" passes
		says   string
	}{
		"a lower that fits": {lower(), func(*gated) {}, "", ""},
		"a raise that fits": {raise(false), func(*gated) {}, "", ""},
		"paused": {
			raise(true), func(in *gated) { in.d.Paused = "memfit.dev/pause on Namespace shop" }, "Paused", "Namespace shop",
		},
		"a VPA owns memory": {
			raise(true), func(in *gated) { in.d.Conflict = "VerticalPodAutoscaler shop/web" }, "Conflict",
			"VerticalPodAutoscaler shop/web",
		},
		"holds": {lower(), func(in *gated) {
			in.want.Recommendation.Decision, in.want.Recommendation.Summary = recommend.Hold, "Hold: no memory samples yet"
		}, "NotEnoughEvidence", "no memory samples"},
		"lower after 5 hours": {
			lower(), func(in *gated) { in.want.Recommendation.Evidence.Window = 5 * time.Hour }, "NotEnoughEvidence",
			"measured for 5 h",
		},
		"lower by an estimate of demand": {
			lower(), func(in *gated) { in.want.Recommendation.Evidence.Estimated = true }, "NotEnoughEvidence", "not exact",
		},
		"raise by an estimate of demand": {
			raise(false), func(in *gated) { in.want.Recommendation.Evidence.Estimated = true }, "", "",
		},
		"raise after 5 hours": {
			raise(false), func(in *gated) { in.want.Recommendation.Evidence.Window = 5 * time.Hour }, "", "",
		},
		"reverted yesterday": {
			lower(), func(in *gated) {
				in.rolledBack(24*time.Hour, 380*mib, 1024*mib)
			}, "Reverted",
			"380Mi was rolled back at 2026-03-01T08:00:00Z because it caused harm; memfit does not retry it until " +
				"2026-03-08T08:00:00Z",
		},
		"reverted, but higher": {
			lower(), func(in *gated) {
				in.rolledBack(24*time.Hour, 200*mib, 400*mib)
			}, "", "",
		},
		"no cool-down": { // cooldown: 0s in a profile
			raise(false), func(in *gated) { in.d.State.LastChange, in.d.Policy.Cooldown = start.Add(-time.Second), 0 }, "", "",
		},
		"cooling down": {
			raise(false), func(in *gated) { in.d.State.LastChange = start.Add(-10 * time.Minute) }, "CoolingDown",
			"last change at 07:50:00Z; the next one waits until 08:50:00Z",
		},
		"uses more than it requests": {raise(false), func(in *gated) {
			in.d.State.LastChange, in.to.Limit = start.Add(-10*time.Minute), in.c.Spec.Limit
		}, "", ""},
		"requests what it uses, and waits": {raise(false), func(in *gated) {
			in.d.State.LastChange, in.to.Limit, in.c.Demand = start.Add(-10*time.Minute), in.c.Spec.Limit, 290*mib
		}, "CoolingDown", "last change"},
		"a kill does not wait": {
			raise(true), func(in *gated) { in.d.State.LastChange = start.Add(-10 * time.Minute) }, "", "",
		},
		"single replica restarts": {
			lower(), func(in *gated) { in.alone, in.c.RestartsOnResize = true, true }, "SingleReplica", "singleReplica",
		},
		"single replica, allowed": {
			lower(), func(in *gated) {
				in.alone, in.c.RestartsOnResize, in.d.Policy.SingleReplicaMayRestart = true, true, true
			}, "", "",
		},
		"guaranteed":  {lower(), func(in *gated) { in.pod.QoS = "Guaranteed" }, "QoSClass", "EqualsLimit"},
		"best effort": {raise(true), func(in *gated) { in.pod.QoS = "BestEffort" }, "QoSClass", "only a new pod"},
		"a raise above the LimitRange, which allows a part of it": {
			raise(false), func(in *gated) { in.want.Range.Max, in.want.Range.Name = 800*mib, "team" }, "", "",
		},
		"a raise above the LimitRange, which allows no part of it": {
			raise(false), func(in *gated) { in.want.Range.Max, in.want.Range.Name = 400*mib, "team" }, "LimitRange",
			"400Mi in LimitRange team",
		},
		"lower than the LimitRange, which allows a part of it": {
			lower(), func(in *gated) { in.want.Range.Min, in.want.Range.Name = 500*mib, "team" }, "", "",
		},
		"lower than the LimitRange, which allows no part of it": {
			lower(), func(in *gated) { in.want.Range.Min, in.want.Range.Name = 2048*mib, "team" }, "LimitRange",
			"minimum of 2Gi",
		},
		"quota of limits": {raise(false), func(in *gated) {
			in.want.Quota.Limits, in.want.Quota.Name, in.d.waitingForQuota = 1024*mib, "q", 3
			in.to.Request = 300 * mib
		}, "ResourceQuota", "1.5Gi more limits.memory for 3 replicas"},
		"quota of requests": {raise(false), func(in *gated) {
			in.want.Quota.Requests, in.want.Quota.Name, in.d.waitingForQuota = 500*mib, "q", 3
			in.to = size(500*mib, 512*mib)
		}, "ResourceQuota", "requests.memory"},
		"quota that holds all that lack it": {raise(false), func(in *gated) {
			in.want.Quota.Limits, in.want.Quota.Name, in.d.waitingForQuota = 1024*mib, "q", 2
		}, "", ""},
		"quota leaves nothing": {
			raise(true), func(in *gated) {
				in.want.Quota.Limits, in.want.Quota.Requests, in.want.Quota.Name = 1, 1, "q"
			}, "ResourceQuota", "quota q leaves nothing",
		},
		"the pod's sum": {
			raise(false), func(in *gated) {
				in.pod.Inadmissible = func(map[string]memory.Size) string { return "all containers together" }
			}, "LimitRange", "all containers together",
		},
		"quota never stops less": {lower(), func(in *gated) { in.want.Quota.Limits, in.want.Quota.Requests = 1, 1 }, "", ""},
		"a reading of an hour ago": {
			lower(), func(in *gated) { in.c.Measured = start.Add(-time.Hour) }, "NotEnoughEvidence",
			"last measured at 2026-03-02T07:00:00Z by the clock of its node",
		},
		"no reading": {
			lower(), func(in *gated) { in.c.Measured, in.c.Demand = time.Time{}, 0 }, "NotEnoughEvidence",
			"was not measured yet",
		},
		"a reading with page cache": {
			lower(), func(in *gated) { in.c.WorkingSetOnly = true }, "NotEnoughEvidence", "working set",
		},
		"no reading never stops a raise": {
			raise(false), func(in *gated) { in.c.Measured, in.c.Demand = time.Time{}, 0 }, "", "",
		},
		"used right now": {
			lower(), func(in *gated) { in.c.Demand = 390 * mib }, "UsageTooHigh", "demand is 390Mi right now",
		},
		"page cache that the kubelet counts": {
			lower(), func(in *gated) { in.c.Demand, in.c.Usage = 90*mib, 410*mib }, "UsageTooHigh",
			"410Mi right now, of which 320Mi is page cache: the kubelet refuses to resize to 400Mi",
		},
		"page cache does not matter to a fresh pod": {
			lower(), func(in *gated) { in.c.Demand, in.c.Usage, in.c.RestartsOnResize = 90*mib, 410*mib, true }, "", "",
		},
		"page cache never stops a raise": {raise(false), func(in *gated) { in.c.Usage = 4096 * mib }, "", ""},
		"used today": {
			lower(), func(in *gated) { in.want.WindowPeak = 401 * mib }, "UsageTooHigh", "401Mi within the last day",
		},
		"frozen heap": {
			lower(), func(in *gated) { in.c.FrozenHeap, in.c.Overhead = 384*mib, 60*mib }, "HeapCapFixed", "384Mi",
		},
		"frozen heap, restarts": {
			lower(), func(in *gated) {
				in.c.FrozenHeap, in.c.Overhead, in.c.RestartsOnResize = 384*mib, 60*mib, true
			}, "", "",
		},
		"a heap cap that a resize does not change": {
			raise(true), func(in *gated) { in.c.CapFor, in.c.Spec.Limit, in.c.FrozenHeap = 256*mib, in.to.Limit, 189*mib },
			"NotEffective", "keeps the heap cap of 189Mi that memfit set for a limit of 256Mi",
		},
		"a higher limit holds what is not heap": {raise(true), func(in *gated) { in.c.CapFor = 256 * mib }, "", ""},
		"node too small": {
			raise(true), func(in *gated) { in.pod.NodeSize = 512 * mib }, "NodeTooSmall", "512Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.in
			c.change(&in)
			got := in.verdict(false)
			if got.Reason != c.want || !strings.Contains(got.Message, c.says) || (got.Message == "") != (c.want == "") {
				t.Errorf("got %q %q, want %q with %q", got.Reason, got.Message, c.want, c.says)
			}
		})
	}
}

func TestTheFirstRefusalIsTheOneSeen(t *testing.T) {
	in := lower()
	in.d.Paused, in.d.Conflict, in.c.Demand = "the kill switch", "HPA shop/web", 2048*mib
	if reason := in.verdict(false).Reason; reason != "Paused" {
		t.Errorf("first refusal %q, want Paused", reason)
	}
	in.d.Paused = ""
	if reason := in.verdict(false).Reason; reason != "Conflict" {
		t.Errorf("second refusal %q, want Conflict", reason)
	}
}

func TestUseAboveTheRequestDoesNotWait(t *testing.T) {
	g := gatedAt(size(95*mib, 1332*mib), size(812*mib, 1332*mib), 0, 0)
	g.want.Recommendation.UseAboveRequest = true
	g.d.State.LastChange = start.Add(-time.Minute)
	if got := g.verdict(false); got != (Verdict{}) {
		t.Errorf("refused: %+v", got)
	}
	g.c.RestartsOnResize = true
	if reason := g.verdict(false).Reason; reason != v1alpha1.ReasonCoolingDown {
		t.Errorf("with a restart: %q, want CoolingDown", reason)
	}
}

func TestARollBackWaitsForNoEvidenceAndNoCoolDown(t *testing.T) {
	g := gatedAt(size(250*mib, 512*mib), size(250*mib, 256*mib), 235*mib, 0)
	g.want.Recommendation.Guess = &recommend.Raise{From: 256 * mib, At: start.Add(-10 * time.Minute)}
	g.want.Recommendation.Evidence.Window = 8 * time.Minute
	g.d.State.LastChange = start.Add(-10 * time.Minute)
	if got := g.verdict(false); got != (Verdict{}) {
		t.Errorf("refused: %+v", got)
	}
	g.c.Demand = 250 * mib
	if reason := g.verdict(false).Reason; reason != v1alpha1.ReasonUsageTooHigh {
		t.Errorf("lowered onto what is in use: %q", reason)
	}
	g.c.Demand, g.to.Limit = 100*mib, 128*mib
	if reason := g.verdict(false).Reason; reason != v1alpha1.ReasonNotEnoughEvidence {
		t.Errorf("lowered beyond what was before on 8 minutes of use: %q", reason)
	}
}

// TestEachKindOfChangeMeetsItsGates: a change that memfit may not make in any case is refused for each kind that its
// gate names, and a raise in place waits for no other pod.
func TestEachKindOfChangeMeetsItsGates(t *testing.T) {
	bare := func(g *gated) { g.d.Policy.NoEvict = "no controller" }
	protected := func(g *gated) { g.pod.DoNotDisrupt = `karpenter.sh/do-not-disrupt: "true"` }
	restarts := func(g *gated) { g.c.RestartsOnResize = true; protected(g) }
	shut := func(g *gated) { g.d.Policy.Windows = nightly(t) }
	for name, tc := range map[string]struct {
		in    gated
		edit  func(*gated)
		evict bool
		want  string
	}{
		"another writer stops a raise": {raise(true), func(g *gated) {
			g.d.State.ConflictingWriter = &conflict{Why: "vpa did"}
		}, false, v1alpha1.ReasonConflict},
		"a Job's run is not lowered": {lower(), func(g *gated) { g.pod.Completes = true }, false,
			v1alpha1.ReasonWaitingForNewPods},
		"a Job's run is raised": {raise(false), func(g *gated) { g.pod.Completes = true }, false, ""},
		"a Job's run is not restarted, also for a kill": {raise(true), func(g *gated) {
			g.pod.Completes, g.c.RestartsOnResize = true, true
		}, false, v1alpha1.ReasonWaitingForNewPods},
		"nor for a rollback": {raise(false), func(g *gated) {
			g.pod.Completes, g.c.RestartsOnResize = true, true
			g.rolledBack(0, 512*mib, 1024*mib)
		}, false, v1alpha1.ReasonWaitingForNewPods},
		"a Job's container that is down is raised": {raise(true), func(g *gated) {
			g.pod.Completes, g.c.RestartsOnResize, g.c.Started = true, true, time.Time{}
		}, false, ""},
		"a pod that must not be disrupted is not evicted": {raise(true), protected, true, v1alpha1.ReasonWaitingForNewPods},
		"nor restarted":                              {raise(true), restarts, false, v1alpha1.ReasonWaitingForNewPods},
		"nor restarted for a request":                {requestOnly(), restarts, false, v1alpha1.ReasonWaitingForNewPods},
		"it is raised and lowered without a restart": {lower(), protected, false, ""},
		"its container that is down is raised": {raise(true), func(g *gated) {
			restarts(g)
			g.c.Started = time.Time{}
		}, false, ""},
		"a bare pod stays":     {raise(true), bare, true, v1alpha1.ReasonWaitingForNewPods},
		"a bare pod is raised": {raise(true), bare, false, ""},
		"a raise from more than the first limit that was rolled back is no rollback": {raise(false), func(g *gated) {
			g.rolledBack(24*time.Hour, 300*mib, NoLimit)
			g.d.Paused = "memfit.dev/pause on Namespace shop"
		}, false, v1alpha1.ReasonPaused},
		"a raise from the first limit that was rolled back is one": {raise(false), func(g *gated) {
			g.rolledBack(24*time.Hour, g.c.Spec.Limit, NoLimit)
			g.d.Paused = "memfit.dev/pause on Namespace shop"
		}, false, ""},
		"an eviction that a kill asks for waits for no window": {raise(true), shut, true, ""},
		"a closed window lowers":                               {lower(), shut, false, v1alpha1.ReasonWaitingForWindow},
		"a closed window raises":                               {raise(false), shut, false, ""},
		"a closed window, and the owner wants raises to wait": {raise(true), func(g *gated) {
			g.d.Policy.Windows, g.d.Policy.IncreasesInWindows = nightly(t), true
		}, false, v1alpha1.ReasonWaitingForWindow},
		"no window opens for a restart": {raise(false), func(g *gated) {
			g.d.Policy.Windows, g.c.RestartsOnResize = nightly(t), true
		}, false, v1alpha1.ReasonWaitingForWindow},
		"the cap that a restart keeps restarts all the same": {raise(false), func(g *gated) {
			g.d.Policy.Windows, g.c.RestartsOnResize, g.c.Literal = nightly(t), true, true
		}, false, v1alpha1.ReasonWaitingForWindow},
		"a rollback needs no window, no cool-down and no end of a pause": {raise(false), func(g *gated) {
			g.d.Policy.Windows, g.d.Policy.IncreasesInWindows = nightly(t), true
			g.d.State.LastChange, g.d.Paused = start.Add(-time.Minute), "memfit.dev/pause"
			g.rolledBack(0, 512*mib, 1024*mib)
		}, false, ""},
		"a rollback by eviction waits for the end of a pause": {raise(false), func(g *gated) {
			g.d.Paused = "memfit.dev/pause"
			g.rolledBack(0, 512*mib, 1024*mib)
		}, true, v1alpha1.ReasonPaused},
		"an eviction waits for a fresh pod": {raise(true), func(g *gated) {
			g.d.State.Restart = &Step{Pod: "web-2", UID: "uid-2", Phase: AwaitingSuccessor}
		}, true, v1alpha1.ReasonDisruptionBudget},
		"a raise in place does not": {raise(true), func(g *gated) {
			g.d.State.Restart = &Step{Pod: "web-2", UID: "uid-2", Phase: AwaitingSuccessor}
		}, false, ""},
		"a lower limit waits for it": {lower(), func(g *gated) {
			g.d.State.Restart = &Step{Pod: "web-2", UID: "uid-2", Phase: AwaitingSuccessor}
		}, false, v1alpha1.ReasonDisruptionBudget},
	} {
		t.Run(name, func(t *testing.T) {
			tc.edit(&tc.in)
			if got := tc.in.verdict(tc.evict); got.Reason != tc.want || (got.Message == "") != (tc.want == "") {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestRestartsForMemoryMeetTheirGates(t *testing.T) {
	past := func(ago time.Duration) PastRestart {
		return PastRestart{Pod: "old", UID: "uid-old", At: start.Add(-ago)}
	}
	unready := func(in *Input) { in.Pods[1].Ready = false }
	refused := func(in *Input) {
		in.State.Note(
			Action{Pod: "web-1", UID: "uid-1", Evict: true, Restart: true},
			Outcome{Kind: OutcomeNoRight, Why: "no right"}, start,
		)
	}
	for name, tc := range map[string]struct {
		edit  func(*Input)
		alone bool
		want  string // part of what holds it; empty: it is restarted
	}{
		"nothing speaks against it": {edit: func(*Input) {}},
		"paused":                    {edit: func(in *Input) { in.Paused = "memfit.dev/pause" }, want: "paused by memfit.dev"},
		"no controller":             {edit: func(in *Input) { in.Policy.NoEvict = "a bare pod" }, want: "a bare pod"},
		"its owner forbids it": {
			edit: func(in *Input) { in.Pods[0].DoNotDisrupt = `karpenter.sh/do-not-disrupt: "true"` },
			want: `its annotation karpenter.sh/do-not-disrupt: "true" forbids disrupting it`,
		},
		"a Job":               {edit: func(in *Input) { in.Pods[0].Completes = true }, want: "lose its work"},
		"refused moments ago": {edit: refused, want: "no right"},
		"a disruption budget, for the size of another pod": {
			edit: func(in *Input) {
				in.State.Note(
					Action{Pod: "web-2", UID: "uid-2", Evict: true},
					Outcome{Kind: OutcomeBudget, Why: "one must be available"}, start,
				)
			},
			want: "one must be available",
		},
		"an old reading": {
			edit: func(in *Input) { in.Restart.Measured = start.Add(-3 * time.Minute) },
			want: "last measured at 2026-03-02T07:57:00Z",
		},
		"a working set": {edit: func(in *Input) { in.Restart.WorkingSetOnly = true }, want: "page cache"},
		"one per cool-down": {
			edit: func(in *Input) { in.State.PastRestarts = []PastRestart{past(59 * time.Minute)} },
			want: "pod old was restarted at 2026-03-02T07:01:00Z; the next one waits until 2026-03-02T08:01:00Z " +
				"(sizing.disruption.cooldown is 1h)",
		},
		"after the cool-down": {edit: func(in *Input) { in.State.PastRestarts = []PastRestart{past(time.Hour)} }},
		"three a day": {
			edit: func(in *Input) {
				in.State.PastRestarts = []PastRestart{past(23 * time.Hour), past(9 * time.Hour), past(2 * time.Hour)}
			},
			want: "3 pods were restarted in the last 24h, and drift.maxPerDay is 3",
		},
		"yesterday does not count": {edit: func(in *Input) {
			in.State.PastRestarts = []PastRestart{past(25 * time.Hour), past(9 * time.Hour), past(2 * time.Hour)}
		}},
		"another one is not ready": {edit: unready, want: "1 of 2 pods unavailable"},
		"another one is not ready, and two may be": {edit: func(in *Input) {
			unready(in)
			in.Policy.MaxUnavailable = 2
		}},
		"another one is leaving, as for ever on a lost node": {edit: func(in *Input) {
			in.Pods = append(in.Pods, Pod{Name: "web-3", UID: "uid-3", Ready: true})
			in.Pods[1].Terminating = true
		}},
		"the only one": {
			edit: func(*Input) {}, alone: true, want: "set sizing.disruption.singleReplica to Allowed",
		},
		"the only one, where its owner takes the gap": {
			edit: func(in *Input) { in.Policy.SingleReplicaMayRestart = true }, alone: true,
		},
		"a zero policy": {
			edit: func(in *Input) { in.Policy.RestartsPerDay = 0 }, want: "drift.maxPerDay is 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, big)
			if tc.alone {
				c.in.Pods = c.in.Pods[:1]
			}
			c.in.Restart = &Candidate{Pod: "web-1", UID: "uid-1", Why: "it climbs", Measured: start}
			c.in.Policy.RestartsPerDay = 3
			tc.edit(&c.in)
			got := Decide(c.in)
			if (len(got.Actions) == 1) != (tc.want == "") || !strings.Contains(got.RestartBlocked, tc.want) ||
				(got.RestartBlocked == "") != (tc.want == "") {
				t.Errorf("held %q and %+v, want %q", got.RestartBlocked, got.Actions, tc.want)
			}
			if got.RestartBlocked != "" && got.RequeueAfter == 0 {
				t.Error("nothing says when to decide again")
			}
		})
	}
}

// TestAGuessIsTakenBackWithoutADayOfEvidence: no further than to what the owner asks for and where it was before, once,
// and without a cool-down where nothing restarts.
func TestAGuessIsTakenBackWithoutADayOfEvidence(t *testing.T) {
	lowered := func(to memory.Bytes, ago time.Duration) []Lowering {
		return []Lowering{{Container: "app", To: size(0, to), At: start.Add(-ago), Proven: true}}
	}
	for name, c := range map[string]struct {
		change func(*gated)
		passes bool
	}{
		"a guess":               {func(*gated) {}, true},
		"none":                  {func(g *gated) { g.want.Recommendation.Guess = nil }, false},
		"it has just started":   {func(g *gated) { g.c.Started = start.Add(-9 * time.Minute) }, false},
		"it does not run":       {func(g *gated) { g.c.Started = time.Time{} }, false},
		"the owner's is more":   {func(g *gated) { g.c.Owner.Limit = 191 * mib }, false},
		"the owner sets none":   {func(g *gated) { g.c.Owner.Limit = 0 }, true},
		"it was killed at more": {func(g *gated) { g.want.Recommendation.Guess.From = 191 * mib }, false},
		"a restart cools down":  {func(g *gated) { g.c.RestartsOnResize = true }, false},
		"corrected before": {func(g *gated) {
			g.d.State.Lowerings = lowered(220*mib, 30*time.Minute)
		}, false},
		"another pod is corrected": {func(g *gated) {
			g.d.State.Lowerings = lowered(g.to.Limit, 30*time.Minute)
		}, true},
		"lowered before the kill": {func(g *gated) {
			g.d.State.Lowerings = lowered(220*mib, 3*time.Hour)
		}, true},
	} {
		g := gatedAt(size(64*mib, 256*mib), size(64*mib, 190*mib), 70*mib, 100*mib)
		g.c.Owner = size(64*mib, 64*mib)
		g.want.Recommendation.Evidence.Window = time.Hour
		g.want.Recommendation.Guess = &recommend.Raise{At: start.Add(-61 * time.Minute), From: 100 * mib}
		g.d.State.LastChange = start.Add(-59 * time.Minute)
		c.change(&g)
		if got := g.verdict(false); (got == Verdict{}) != c.passes {
			t.Errorf("%s: %+v, want it to pass: %t", name, got, c.passes)
		}
	}
}

// TestAnEvictionOfAnEarlierModeIsRemoved: it was stored and not sent when the mode became OnCreate, and what it gives
// is also what the pod gets back.
func TestAnEvictionOfAnEarlierModeIsRemoved(t *testing.T) {
	for _, phase := range []Phase{Evicting, Resizing} {
		pod := &Pod{Name: "web-1", UID: "uid-1", Containers: []Container{{
			Name: "app", Owner: big, RestoreLimit: big.Limit, Spec: small, Actual: small,
		}}}
		d := decider{Input: Input{Now: start, Policy: ownersDefaults()}, pods: map[types.UID]*Pod{"uid-1": pod}}
		d.Policy.KeepRunningPods = true
		back := memory.Size{Limit: big.Limit, Request: small.Request}
		st := Step{Pod: "web-1", UID: "uid-1", Phase: phase, From: sizes(small), To: sizes(back)}
		if got, want := d.outdated(st), phase == Evicting; got != want {
			t.Errorf("a step %s is removed: %t, want %t", phase, got, want)
		}
	}
}

func sizes(size memory.Size) map[string]memory.Size {
	return map[string]memory.Size{"app": size}
}

// TestARollbackWaitsForNoOtherController: memfit has lowered the limits, and somebody adds an HPA on memory or a VPA.
// The request, on which that works, is left.
func TestARollbackWaitsForNoOtherController(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(c *cluster)
		want string
		size memory.Size
	}{
		"one that has resized no pod": {want: "256Mi 256Mi 256Mi", size: size(small.Request, big.Limit)},
		"a Guaranteed pod": {
			edit: func(c *cluster) {
				for i := range c.in.Pods {
					c.in.Pods[i].QoS = "Guaranteed"
				}
			},
			want: "256Mi 256Mi 256Mi", size: size(big.Limit, big.Limit),
		},
		"pods that were created so": {
			edit: func(c *cluster) {
				for i := range c.in.Pods {
					c.app(i).RestoreLimit = 0
				}
			},
			want: "256Mi 256Mi 256Mi", size: size(small.Request, big.Limit),
		},
		"the first was created with another size": {
			edit: func(c *cluster) {
				other := size(90*mib, 120*mib)
				c.app(0).Spec, c.app(0).Actual, c.app(0).RestoreLimit = other, other, 0
			},
			want: "120Mi 256Mi 256Mi", size: size(90*mib, 120*mib),
		},
		"one that has resized the first": {
			edit: func(c *cluster) { c.in.Pods[0].Writer, c.in.Pods[0].WrittenAt = "vpa-updater", c.in.Now },
			want: "100Mi 256Mi 256Mi", size: small,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, big)
			c.lowersAll()
			for i := range c.in.Pods {
				c.app(i).Owner, c.app(i).RestoreLimit = big, big.Limit
			}
			if tc.edit != nil {
				tc.edit(c)
			}
			c.in.Conflict = "HorizontalPodAutoscaler web"
			c.killed(1)
			for range 3 {
				c.reconcile()
				c.passes(time.Minute)
			}
			c.expectLimits(tc.want)
			if got := c.app(0).Spec; got != tc.size {
				t.Errorf("the first pod has %+v, want %+v", got, tc.size)
			}
			c.wants(size(300*mib, 400*mib), true)
			c.reconcile()
			c.expectLimits(tc.want)
			c.expectReason(v1alpha1.ReasonConflict)
			if c.evictions() > 0 {
				t.Error(c.log)
			}
		})
	}
}

// TestInPlaceOfNoLimitAPodGetsWhatIsRecommended: it did harm. Pods that have more already keep that, as their mode is
// to, until a kill asks for more.
func TestInPlaceOfNoLimitAPodGetsWhatIsRecommended(t *testing.T) {
	for name, tc := range map[string]struct {
		has    memory.Bytes
		urgent bool
		want   memory.Bytes
	}{
		"what was rolled back":    {has: 100 * mib, want: 256 * mib},
		"less":                    {has: 90 * mib, want: 256 * mib},
		"more":                    {has: 160 * mib, want: 160 * mib},
		"more, and a kill at it":  {has: 160 * mib, urgent: true, want: 256 * mib},
		"more than a kill is for": {has: 300 * mib, urgent: true, want: 300 * mib},
	} {
		c := newCluster(t, 1, size(50*mib, tc.has))
		c.in.Policy.KeepRunningPods = true
		c.app(0).Owner = size(50*mib, NoLimit)
		c.written.Reverts = []Revert{{
			Container: "app", At: start, Tried: size(0, 100*mib), Restored: size(0, NoLimit),
		}}
		c.wants(big, tc.urgent)
		if c.reconcile(); c.app(0).Spec.Limit != tc.want {
			t.Errorf("%s: limit %s, want %s: %s", name, c.app(0).Spec.Limit, tc.want, c.last.Message)
		}
	}
}
