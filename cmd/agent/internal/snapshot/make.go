// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rescue"
)

// Container returns the readings of a container's running instance in its recorder.
func Container(name string, r *flightrecorder.Recorder) v1alpha1.ContainerSnapshot {
	c := v1alpha1.ContainerSnapshot{Container: name, Inspection: v1alpha1.InspectionNotEnabled}
	if reading, _, at := r.Last(); !at.IsZero() {
		c.Limit, c.High = limit(reading.Limit), limit(reading.High)
		c.Usage, c.Demand = amount(reading.Usage), amount(reading.Demand())
		c.Swap = format.Exact(reading.Swap)
		c.Peak = amount(r.Peak())
	}
	return c
}

// Kill converts a kill for the API.
func Kill(k *flightrecorder.Kill) *v1alpha1.KillSnapshot {
	out := &v1alpha1.KillSnapshot{
		Time: metav1.NewTime(k.Time.Truncate(1e9)), Kind: string(k.Kind), Evidence: string(k.Detection),
		LimitReached: string(k.Reached), LimitsChanged: k.LimitsChanged,
	}
	out.ContainerLimit, out.PodLimit, out.Summary = limit(k.ContainerLimit), limit(k.PodLimit), k.Summary()
	if !k.Seen {
		return out
	}
	out.Usage, out.LastReadMillisecondsBefore = amount(k.Usage), milliseconds(k.LastRead)
	out.GrowthMilliseconds, out.GrowthPerSecond = grew(k.Growth)
	out.Series = series(k.Series)
	for _, p := range k.Processes {
		out.Processes = append(out.Processes, v1alpha1.ProcessDied{
			Name: p.Name, PID: int32(p.InnerPID), Resident: amount(p.Resident), //nolint:gosec // Linux has 2^22 at most
		})
	}
	return out
}

// Alarm converts an alarm for the API.
func Alarm(container, id string, sequence int64, p rescue.Prediction) *v1alpha1.Alarm {
	return &v1alpha1.Alarm{
		Container: container, ContainerID: id, Sequence: sequence, Time: metav1.NewMicroTime(p.At),
		Demand: *amount(p.Demand), Limit: *amount(p.Limit), GrowthPerSecond: *amount(p.PerSecond),
		TimeToLimitMilliseconds: milliseconds(p.Left.Round(time.Millisecond)),
	}
}

// grew converts the growth of usage for the API: its duration and rate; nil: no growth.
func grew(g flightrecorder.Growth) (forMilliseconds int32, perSecond *resource.Quantity) {
	if g.For <= 0 {
		return 0, nil
	}
	return milliseconds(g.For), amount(g.PerSecond.FloorTo(memory.KiB)) // a rate is not an exact number
}

func milliseconds(d time.Duration) int32 {
	return int32(min(max(d.Milliseconds(), 0), math.MaxInt32))
}

func series(points []flightrecorder.Point) (out []v1alpha1.UsagePoint) {
	for _, p := range points {
		out = append(out, v1alpha1.UsagePoint{
			MillisecondsBefore: int32(p.Before.Milliseconds()), //nolint:gosec // within a minute
			Usage:              *amount(p.Usage),
		})
	}
	return out
}

// Stall converts a stall for the API.
func Stall(s *flightrecorder.Stall) *v1alpha1.StallSnapshot {
	out := &v1alpha1.StallSnapshot{
		Anonymous: amount(s.Anon), High: format.Exact(s.High), Started: metav1.NewTime(s.Started.Truncate(1e9)),
		MajorFaultsPerSecond: int32(min(s.FaultsPerSec, 1<<30)), //nolint:gosec // bounded
		StalledPercent:       int32(s.StalledPercent),           //nolint:gosec // at most 100
	}
	out.ContainerLimit, out.PodLimit, out.Summary = limit(s.ContainerLimit), limit(s.PodLimit), s.Summary()
	out.Series = series(s.Series)
	if !s.Ended.IsZero() {
		out.Ended = new(metav1.NewTime(s.Ended.Truncate(1e9)))
	}
	if s.Seen {
		out.Usage = amount(s.Usage)
	}
	out.GrowthMilliseconds, out.GrowthPerSecond = grew(s.Growth)
	return out
}

// Summarize writes the summaries of all containers and of the pod.
func Summarize(s *v1alpha1.MemorySnapshotStatus) {
	best, worst := "", -1
	for i := range s.Containers {
		c := &s.Containers[i]
		c.Summary = quote.Cut(summary(c), maxSummary)
		if u := urgency(c); u > worst {
			best, worst = c.Container+": "+c.Summary, u
		}
	}
	s.Summary = quote.Cut(best, maxSummary)
}

// maxSummary bounds a summary as the API does, but in bytes instead of characters.
const maxSummary = 1024

func summary(c *v1alpha1.ContainerSnapshot) string {
	var parts []string
	switch {
	case c.Usage == nil:
		parts = append(parts, "not running")
	case c.Limit == nil:
		parts = append(parts, fmt.Sprintf("uses %s without a limit, of which %s cannot be reclaimed", size(c.Usage),
			size(c.Demand)))
	default:
		parts = append(parts, fmt.Sprintf("uses %s of %s, of which %s cannot be reclaimed", size(c.Usage), size(c.Limit),
			size(c.Demand)))
	}
	if c.Swap != nil && !c.Swap.IsZero() {
		parts[0] += fmt.Sprintf(" (%s swapped out)", size(c.Swap))
	}
	if c.High != nil && c.Usage != nil {
		parts = append(parts, fmt.Sprintf("the kernel slows it down above %s (memory.high)", size(c.High)))
	}
	if m := c.Memory; m != nil && m.Summary != "" {
		parts = append(parts, m.Summary)
	}
	if st := c.LastStall; st != nil && st.Ended == nil {
		parts = append(parts, "since "+format.Time(st.Started.Time)+" it "+st.Summary)
	}
	if k := c.LastKill; k != nil {
		parts = append(parts, format.Time(k.Time.Time)+": "+k.Summary)
	}
	return strings.Join(parts, "; ")
}

// urgency returns how much a container needs attention: after a kill most, then in a stall, then by demand/limit.
func urgency(c *v1alpha1.ContainerSnapshot) int {
	switch {
	case c.LastKill != nil:
		return 300
	case c.LastStall != nil && c.LastStall.Ended == nil:
		return 200
	case c.Limit != nil && c.Demand != nil && c.Limit.Value() > 0:
		return int(min(100*c.Demand.Value()/c.Limit.Value(), 100))
	}
	return 0
}

// Changed returns how much two snapshots of a pod differ: Jumped if usage or resident memory changed by half; Changed
// if a container, limit or finding changed, or an amount by more than an eighth; else Same.
func Changed(old, now *v1alpha1.MemorySnapshotStatus) flightrecorder.Change {
	if old == nil || len(old.Containers) != len(now.Containers) || old.Tier != now.Tier ||
		!same(old.PodLimit, now.PodLimit) {
		return flightrecorder.Changed
	}
	change := flightrecorder.Same
	for i := range old.Containers {
		a, b := &old.Containers[i], &now.Containers[i]
		if jumped(a.Usage, b.Usage) || jumped(resident(a.Memory), resident(b.Memory)) {
			return flightrecorder.Jumped
		}
		if a.Container != b.Container || a.Inspection != b.Inspection || !same(a.Limit, b.Limit) || !same(a.High, b.High) ||
			!near(a.Usage, b.Usage) || !near(a.Demand, b.Demand) ||
			!near(resident(a.Memory), resident(b.Memory)) ||
			(a.Runtime == nil) != (b.Runtime == nil) || (a.Map == nil) != (b.Map == nil) {
			change = flightrecorder.Changed
		}
	}
	return change
}

// resident returns the resident memory at the inspection of a container; nil: not inspected.
func resident(m *v1alpha1.MemoryParts) *resource.Quantity {
	if m == nil {
		return nil
	}
	return &m.Resident
}

func same(a, b *resource.Quantity) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Cmp(*b) == 0
}

// near reports whether two numbers differ by at most an eighth, which is not worth a write.
func near(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := a.Value(), b.Value()
	return max(x, y)-min(x, y) <= max(x, y)/8
}

// jumped reports whether two numbers differ by at least half of the smaller one, which a user would want to see soon.
func jumped(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := a.Value(), b.Value()
	return 2*max(x, y) >= 3*min(x, y) && x != y
}

// limit converts a limit for the API; nil: unlimited.
func limit(b memory.Bytes) *resource.Quantity {
	if b == cgroup.Unlimited {
		return nil
	}
	return amount(b)
}

// amount returns a quantity, even for 0.
func amount(b memory.Bytes) *resource.Quantity { return new(b.Quantity()) }

func size(q *resource.Quantity) string {
	if q == nil {
		return "an unknown amount"
	}
	return memory.FromQuantity(*q).String()
}
