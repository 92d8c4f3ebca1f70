// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// identity identifies the container instance of a series. Right after a restart, a container has two instances.
type identity struct {
	memory.ContainerRef
	cgroup string
}

// identify returns the instance that the labels name; false if the series is not of a container.
func identify(m model.Metric) (identity, bool) {
	id := identity{cgroup: string(m["id"])}
	id.Namespace, id.Pod, id.Container = string(m["namespace"]), string(m["pod"]), string(m["container"])
	uid, _ := usage.ParseCgroup(id.cgroup)
	id.UID = types.UID(uid)
	return id, id.Namespace != "" && id.Pod != "" && id.Container != "" && id.Container != "POD"
}

// reading is one instance's data at one time.
type reading struct {
	rss, swap, workingSet memory.Bytes
	demand                memory.Bytes // without swap
	hasRSS, hasSwap       bool
	hasDemand             bool
	measured              time.Time
}

func (r *reading) setRSS(v float64)        { r.rss, r.hasRSS = amount(v) }
func (r *reading) setSwap(v float64)       { r.swap, r.hasSwap = amount(v) }
func (r *reading) setDemand(v float64)     { r.demand, r.hasDemand = amount(v) }
func (r *reading) setWorkingSet(v float64) { r.workingSet, _ = amount(v) }

func (r *reading) setTime(v float64) {
	if v > 0 && v < 1<<40 {
		r.measured = time.UnixMilli(int64(v * 1000)).UTC()
	}
}

// amount converts a number of bytes; false if it is invalid.
func amount(v float64) (memory.Bytes, bool) {
	if !(v >= 0 && v < math.MaxInt64) { // NaN is neither
		return 0, false
	}
	return memory.Bytes(v), true
}

// sample returns the reading as a sample. swaps is true if the node has swap space: a reading without swap is then
// inexact, because cAdvisor reports swap for every container, so the series was dropped.
func (r *reading) sample(ref memory.ContainerRef, swaps bool) memory.Sample {
	s := memory.Sample{
		Container: ref, Time: r.measured, RSS: r.rss, HasRSS: r.hasRSS, Swap: r.swap, WorkingSet: r.workingSet,
	}
	if r.hasDemand {
		s = s.WithDemand(r.demand.Plus(r.swap))
		s.Exact = r.hasSwap || !swaps
	}
	return s
}

// readings has the values of all containers of a node at one time.
type readings map[identity]*reading

func (all readings) add(vector model.Vector, set func(*reading, float64)) {
	for _, v := range vector {
		if v == nil {
			continue
		}
		id, ok := identify(v.Metric)
		if !ok {
			continue
		}
		if all[id] == nil {
			all[id] = &reading{measured: v.Timestamp.Time().UTC()} // time of the query, until setTime
		}
		set(all[id], float64(v.Value))
	}
}

// samples returns one sample per container, of its newest instance. It ignores instances with only zeros, which have
// ended. unnamed is the number of instances without a pod UID: an earlier pod may have had the same name.
func (all readings) samples(swaps bool) (samples []memory.Sample, unnamed int) {
	newest := map[memory.ContainerRef]memory.Sample{}
	for id, l := range all {
		if l.rss == 0 && l.workingSet == 0 && l.demand == 0 {
			continue
		}
		if id.UID == "" {
			unnamed++
			continue
		}
		s := l.sample(id.ContainerRef, swaps)
		known, ok := newest[id.ContainerRef]
		if !ok || s.Time.After(known.Time) || s.Time.Equal(known.Time) && s.WorkingSet > known.WorkingSet {
			newest[id.ContainerRef] = s
		}
	}
	return slices.SortedFunc(maps.Values(newest), byTime), unnamed
}

// byTime orders samples by time, then by pod, container and UID.
func byTime(a, b memory.Sample) int {
	if c := a.Time.Compare(b.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Container.Pod+"/"+a.Container.Container+string(a.Container.UID),
		b.Container.Pod+"/"+b.Container.Container+string(b.Container.UID))
}
