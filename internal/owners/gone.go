// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// goneKept is how many deleted owners each of two generations holds: about 2 MB when both are full. An owner that is
// forgotten costs one more read of the API server.
const goneKept = 8192

// Gone remembers owners that no longer exist, from the deletions that informers deliver and from reads that the API
// server answered with 404. The name belongs to the key, so that a forged reference with the UID of another tenant's
// object marks nothing but itself. Safe for concurrent use; nil remembers nothing.
type Gone struct {
	mu            sync.Mutex
	recent, older map[goneOwner]struct{}
}

type goneOwner struct {
	ref memory.WorkloadRef
	uid types.UID
}

// Add notes that the owner with that name and UID no longer exists. An empty UID is ignored: another object may have
// the name.
func (g *Gone) Add(ref memory.WorkloadRef, uid types.UID) {
	if g == nil || uid == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recent == nil || len(g.recent) >= goneKept {
		g.recent, g.older = map[goneOwner]struct{}{}, g.recent
	}
	g.recent[goneOwner{ref, uid}] = struct{}{}
}

// Has reports whether the owner is known to be gone.
func (g *Gone) Has(ref memory.WorkloadRef, uid types.UID) bool {
	if g == nil || uid == "" {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := goneOwner{ref, uid}
	if _, found := g.recent[key]; found {
		return true
	}
	_, found := g.older[key]
	return found
}
