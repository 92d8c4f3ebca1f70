// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// runsKept bounds the runs that are remembered of a program: a month of a daily run, in some 800 bytes.
const runsKept = 30

// run is what one pod of a workload whose pods run to completion used at most. Its ID is a hash of the pod's UID.
type run struct {
	ID   uint32       `json:"i"`
	Peak memory.Bytes `json:"p"`
}

func runID(pod types.UID) uint32 {
	h := fnv.New32a()
	h.Write([]byte(pod))
	return h.Sum32()
}

// ran notes the demand of a run.
func (e *evidence) ran(pod types.UID, demand memory.Bytes) {
	e.Runs = withRun(e.Runs, runID(pod), demand)
}

// withRun returns the runs with a demand of one of them, which may be new.
func withRun(runs []run, id uint32, demand memory.Bytes) []run {
	i := slices.IndexFunc(runs, func(r run) bool { return r.ID == id })
	if i < 0 {
		runs = append(runs, run{ID: id})
		runs = runs[max(len(runs)-runsKept, 0):]
		i = len(runs) - 1
	}
	runs[i].Peak = max(runs[i].Peak, demand)
	return runs
}

// peaks returns the peak of each run. A run that was killed at its limit needed at least that.
func peaks(runs []run, kills []memory.OOMKill) []memory.Bytes {
	if len(runs) == 0 {
		return nil
	}
	runs = slices.Clone(runs)
	for _, k := range kills {
		if k.Kind != memory.OOMPodLimit && k.Kind != memory.OOMHeapAbort {
			runs = withRun(runs, runID(k.Container.UID), k.Limit)
		}
	}
	all := make([]memory.Bytes, len(runs))
	for i := range runs {
		all[i] = runs[i].Peak
	}
	return all
}
