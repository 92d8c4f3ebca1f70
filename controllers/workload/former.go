// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// former is the state that remains of a workload that was deleted, or that no profile governs any longer.
type former struct {
	owner, namespace types.UID
	state            *workload.State
	at               time.Time
}

const (
	// formerKept is how long a state remains for a workload that is created again, as to enlarge a database's volumes.
	formerKept = time.Hour
	// maxFormers limits the states, of a few KiB each: Jobs with ever new names end all day.
	maxFormers = 1000
)

// formers has the former workloads, in memory, because the garbage collector deletes their records within seconds.
type formers struct {
	mu  sync.Mutex
	all map[memory.WorkloadRef]former
}

func (f *formers) keep(w memory.WorkloadRef, of former) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[memory.WorkloadRef]former{}
	}
	f.all[w] = of
	if len(f.all) <= maxFormers {
		return
	}
	oldest := w
	for other, o := range f.all {
		if o.at.Before(f.all[oldest].at) {
			oldest = other
		}
	}
	delete(f.all, oldest)
}

// of returns the state of an earlier workload with this name and another UID; nil: none. namespace is the namespace's
// UID: a namespace that was deleted and created again may be another tenant's.
func (f *formers) of(w memory.WorkloadRef, uid, namespace types.UID, now time.Time) *workload.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of, found := f.all[w]; found && of.owner != uid && of.namespace == namespace && now.Sub(of.at) < formerKept {
		return of.state
	}
	return nil
}

func (f *formers) drop(w memory.WorkloadRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, w)
}
