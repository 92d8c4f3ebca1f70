// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
)

// Availability counts the pods of a workload. What is neither serving nor changing is unavailable for a reason of its
// own, or missing.
type Availability struct {
	// Wanted is how many pods there should be.
	Wanted int
	// Serving are ready and are not being changed in a way that may keep them from serving.
	Serving int
	// Changing are unavailable because of memfit, or may be soon: evicted and not replaced yet, restarted for a resize, or
	// the first to run with a lower limit.
	Changing int
}

// Availability counts pods. The change of one pod may be left out, because it is the one in question. wanted is how
// many pods there should be; 0: as many as there are, and those that were evicted and not replaced yet. One that is
// leaving is not there any more, like one that is gone: it may never go, on a node that is lost.
func (s *State) Availability(pods []Pod, wanted int, but types.UID) Availability {
	disturbed := s.disturbed(pods)
	delete(disturbed, but)
	a := Availability{Wanted: len(disturbed), Changing: len(disturbed)}
	for i := range pods {
		pod := &pods[i]
		if pod.Leaving || disturbed[pod.UID] {
			continue
		}
		if a.Wanted++; pod.Ready {
			a.Serving++
		}
	}
	if wanted > 0 {
		a.Wanted = wanted
	}
	return a
}

// Unavailable is the number of pods that do not serve, or may not soon.
func (a Availability) Unavailable() int { return max(a.Wanted-a.Serving, 0) }

// TooFew returns why one more pod must not be kept from serving; empty: it may be.
func (a Availability) TooFew(maxUnavailable int32) string {
	most := int(max(maxUnavailable, 1))
	if a.Unavailable() < most {
		return ""
	}
	return fmt.Sprintf("%d of %s unavailable or missing, %d of them updating: maxUnavailable is %d", a.Unavailable(),
		format.Count(a.Wanted, "pod"), a.Changing, most)
}

func (p *Pod) serves() bool { return p.Ready && !p.Leaving }

// disturbed are the pods that memfit keeps from serving, or may.
func (s *State) disturbed(pods []Pod) map[types.UID]bool {
	all := map[types.UID]bool{}
	if s.Restart != nil {
		all[s.Restart.UID] = true
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		switch {
		case st.Phase == Resizing && lowersAny(st.From, st.To) && (s.Rollout.Decrease || !s.hasLoan(st.UID)), s.canary(st):
			all[st.UID] = true // the canary, and each lower limit until it is effective
		case st.evicts(), st.Phase != Watching && slices.ContainsFunc(pods, func(p Pod) bool {
			return p.UID == st.UID && !p.Leaving && p.restartsFor(st)
		}):
			all[st.UID] = true
		}
	}
	return all
}
