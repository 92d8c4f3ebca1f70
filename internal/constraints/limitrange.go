// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Range has the bounds of a namespace's LimitRanges for a container's limit and request; 0: no bound.
type Range struct {
	// Name is the name of the LimitRange, or of two ("a and b") if one has the minimum and another one the maximum.
	Name     string
	Min, Max memory.Bytes
	// Ratio is maxLimitRequestRatio in thousandths.
	Ratio int64
}

// Within returns the nearest size within the bounds. A request equal to the limit remains equal.
func (r Range) Within(s memory.Size) memory.Size {
	ask := DesiredSize{Equal: s.Request == s.Limit}
	return ask.with(bounds{r.Min, r.Max, r.Ratio}.within(s))
}

// limits has the memory bounds of one LimitRange.
type limits struct {
	name           string
	container, pod bounds
}

// bounds are memory bounds of a container or pod; 0: none. ratio is maxLimitRequestRatio in thousandths.
type bounds struct {
	min, max memory.Bytes
	ratio    int64
}

// limitsOf returns the memory bounds of LimitRanges, ordered by name.
func limitsOf(ranges []corev1.LimitRange) []limits {
	var all []limits
	for i := range ranges {
		l := limits{name: ranges[i].Name}
		for _, item := range ranges[i].Spec.Limits {
			switch item.Type {
			case corev1.LimitTypeContainer:
				l.container.tighten(item)
			case corev1.LimitTypePod:
				l.pod.tighten(item)
			default: // storage
			}
		}
		if l.container != (bounds{}) || l.pod != (bounds{}) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b limits) int { return cmp.Compare(a.name, b.name) })
	return all
}

func (b *bounds) tighten(item corev1.LimitRangeItem) {
	b.min = max(b.min, memory.FromQuantity(*item.Min.Memory()))
	b.max = least(b.max, memory.FromQuantity(*item.Max.Memory()))
	if q := item.MaxLimitRequestRatio.Memory(); q.MilliValue() > 0 {
		b.ratio = least(b.ratio, q.MilliValue())
	}
}

// least returns the smaller of two bounds, where 0 means no bound.
func least[T cmp.Ordered](a, b T) T {
	var none T
	if a == none || b != none && b < a {
		return b
	}
	return a
}

// rangeOf returns the intersection of all LimitRanges for a container.
func rangeOf(all []limits) Range {
	var r Range
	var lower, upper, ratio string
	for _, l := range all {
		if l.container.min > r.Min {
			r.Min, lower = l.container.min, l.name
		}
		if l.container.max > 0 && (r.Max == 0 || l.container.max < r.Max) {
			r.Max, upper = l.container.max, l.name
		}
		if l.container.ratio > 0 && (r.Ratio == 0 || l.container.ratio < r.Ratio) {
			r.Ratio, ratio = l.container.ratio, l.name
		}
	}
	r.Name = cmp.Or(both(lower, upper), ratio)
	return r
}

// both joins two names. It omits an empty name, and returns equal names once.
func both(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	default:
		return a + " and " + b
	}
}

// Refusal returns why LimitRanges would refuse the pod if containers had these sizes, by name; containers without an
// entry keep their size. "": the pod would be admitted, or is nil.
func (f *Facts) Refusal(pod *corev1.Pod, sizes map[string]memory.Size) string {
	if pod == nil {
		return ""
	}
	for i := range f.limits {
		l := &f.limits[i]
		for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for j := range containers {
				if why := l.container.refusal(sizeOf(&containers[j], sizes)); why != "" {
					return "container " + containers[j].Name + ": " + why + " in LimitRange " + l.name
				}
			}
		}
		if why := l.pod.refusal(Total(pod, sizes)); why != "" {
			return "all containers of the pod together: " + why + " in LimitRange " + l.name
		}
	}
	return ""
}

// HighestAccepted returns the highest limit between from and to, in steps of 1 MiB, that is not refused, and why to is
// refused; "": it is not. If refused returns a reason for a limit, it must return a reason for all higher limits.
func HighestAccepted(from, to memory.Bytes, refused func(memory.Bytes) string) (most memory.Bytes, why string) {
	if why = refused(to); why == "" {
		return to, ""
	}
	after := func(steps int) memory.Bytes { return from + memory.Bytes(steps)*memory.MiB }
	steps := sort.Search(int(to.Minus(from)/memory.MiB), func(i int) bool { return refused(after(i+1)) != "" })
	return after(steps), why
}

// refusal makes the checks of the LimitRanger admission plugin in the plugin's order: minimum, maximum, ratio.
func (b bounds) refusal(s memory.Size) string {
	switch {
	case s.Request < b.min:
		return fmt.Sprintf("request %s is below the minimum of %s", s.Request, b.min)
	case s.Limit > 0 && s.Limit < b.min:
		return fmt.Sprintf("limit %s is below the minimum of %s", s.Limit, b.min)
	case b.max > 0 && s.Limit == 0:
		return fmt.Sprintf("no limit is set, and the maximum is %s", b.max)
	case b.max > 0 && max(s.Limit, s.Request) > b.max:
		return fmt.Sprintf("limit %s is above the maximum of %s", max(s.Limit, s.Request), b.max)
	case b.ratio > 0 && (s.Limit == 0 || s.Request == 0):
		return fmt.Sprintf("request and limit are both needed, because the limit may be at most %s times the request",
			times(b.ratio))
	case b.ratio > 0 && float64(s.Limit)/float64(s.Request)*1000 > float64(b.ratio):
		return fmt.Sprintf("limit %s is more than %s times the request %s, the maxLimitRequestRatio", s.Limit,
			times(b.ratio), s.Request)
	}
	return ""
}

// times formats a ratio in thousandths: "1.5".
func times(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }
