// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// Worth has hashes of a status that decide about a write: it is written again if one of them differs.
type Worth struct {
	// News is of fields that are written immediately.
	News uint64
	// Figures is of fields that change with every burst and restart of a container, and may wait.
	Figures uint64
}

// WorthOf returns the worth of a status. A size close to the published one counts as equal.
func (st *State) WorthOf(s *v1alpha1.MemoryRecommendationStatus) Worth { return worth(s, st.Published) }

// figures are the fluctuating fields of a container's recommendation.
type figures struct {
	use, rate *resource.Quantity
	replicas  int32
}

// moving removes the figures from a container's recommendation and returns them rounded. The rest only shows their
// presence.
func moving(r *v1alpha1.ContainerRecommendation) figures {
	var f figures
	if r.Usage != nil {
		f.use, r.Usage = coarse(r.Usage), &resource.Quantity{}
	}
	if r.FoundRuntime != nil {
		f.replicas, r.FoundRuntime.Replicas = int32(rounded125(int64(r.FoundRuntime.Replicas))), 0 //nolint:gosec // less
	}
	if r.Shape != nil {
		f.rate, r.Shape.RatePerDay = coarse(r.Shape.RatePerDay), nil
	}
	return f
}

// worth omits text, and rounds numbers so that they rarely change. Without it every sample would be an API write; with
// it a steady workload costs a few writes a day.
func worth(s *v1alpha1.MemoryRecommendationStatus, published map[string]published) Worth {
	c := s.DeepCopy()
	moves := make([]string, len(c.Containers))
	for i := range c.Containers {
		r := &c.Containers[i]
		asRecommended := r.Recommended != nil && r.NewPods != nil &&
			near(profile.SizeOf(*r.NewPods), profile.SizeOf(*r.Recommended))
		if last, had := published[r.Container]; had && r.Recommended != nil &&
			near(profile.SizeOf(*r.Recommended), last.Size) {
			size := profile.APISize(last.Size)
			r.Recommended = &size
		}
		if asRecommended {
			r.NewPods = r.Recommended
		}
		r.Reasons, r.Summary, r.Evidence.WindowSeconds, r.UsageTime = nil, "", 0, nil
		r.Evidence.Samples = rounded125(r.Evidence.Samples)
		if r.Breakdown != nil {
			r.Breakdown = []string{""} // whether it exists, not its contents
		}
		if r.Suggestions != nil {
			r.Suggestions = []string{""}
		}
		f := moving(r)
		moves[i] = fmt.Sprint(f.use, f.rate, f.replicas)
		e := &r.Evidence
		for _, q := range []**resource.Quantity{&e.PeakDemand, &e.PeakRSS, &e.PeakSwap, &e.PeakWorkingSet, &e.LiveSetMedian} {
			*q = coarse(*q)
		}
		if r.Shape != nil {
			r.Shape.Summary, r.Shape.TimeToLimitMinSeconds, r.Shape.TimeToLimitMaxSeconds = "", 0, 0
			slices.Sort(r.Shape.OutlierPods) // their order changes with every sample
		}
	}
	for i := range c.Conditions {
		c.Conditions[i].LastTransitionTime, c.Conditions[i].ObservedGeneration = metav1.Time{}, 0
		if c.Conditions[i].Reason != v1alpha1.ReasonConflict { // whose message names the other writer
			c.Conditions[i].Message = ""
		}
	}
	c.Summary, c.CurrentLimit, c.RecommendedLimit, c.ObservedGeneration = "", "", "", 0
	return Worth{News: hashOf(c), Figures: hashOf(moves)}
}

func hashOf(v any) uint64 {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(v); err != nil {
		return 0 // cannot happen with these types; 0 means: write
	}
	return h.Sum64()
}

// nearPercent is the difference up to which a limit counts as equal: evidence changes numbers slightly every hour, and
// every change is a write and an Event. nearRequestPercent is that of a request, which follows use up and down: the
// default of minChangePercent.
const (
	nearPercent        = 5
	nearRequestPercent = 10
)

// near reports whether a size is nearly equal to the published one.
func near(a, b memory.Size) bool {
	return nearBytes(a.Limit, b.Limit, nearPercent) && nearBytes(a.Request, b.Request, nearRequestPercent)
}

func nearBytes(a, b memory.Bytes, percent int32) bool {
	if a == 0 || b == 0 { // unset differs from any number
		return a == b
	}
	return max(a, b).Minus(min(a, b)) <= b.Percent(percent)
}

// rounded125 rounds down to 1, 2 or 5 times a power of ten: three writes for each tenfold evidence.
func rounded125(n int64) int64 {
	for unit := int64(1); unit > 0 && unit <= n; unit *= 10 {
		switch {
		case n < 2*unit:
			return unit
		case n < 5*unit:
			return 2 * unit
		case n < 10*unit:
			return 5 * unit
		}
	}
	return 0
}

// coarse rounds up to an eighth of a power of two: 6 to 12 %.
func coarse(q *resource.Quantity) *resource.Quantity {
	if q == nil {
		return nil
	}
	b := memory.FromQuantity(*q)
	unit := memory.MiB
	for unit*16 < b {
		unit *= 2
	}
	return format.Exact(b.CeilTo(unit))
}
