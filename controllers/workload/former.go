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

// former is what remains of a workload that was deleted, or that no profile governs.
type former struct {
	owner, namespace types.UID
	state            *workload.State
	at               time.Time
}

const (
	// formerKept is how long it may take to create a workload again: longer than to enlarge the volumes of a database.
	formerKept = time.Hour
	// maxFormers bounds the memory, a few KiB each: Jobs of other names end all day.
	maxFormers = 1000
)

// formers are the former workloads by name. The garbage collector deletes their records within seconds.
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

// of returns what remains of a workload of that name with another UID in this namespace; nil: nothing. A namespace that
// is deleted and created again may be another tenant's.
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
