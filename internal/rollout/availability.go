// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
)

// Availability counts the pods of a workload. Pods that are neither serving nor changing are missing, or unavailable
// for other reasons.
type Availability struct {
	Wanted  int // the desired number of pods
	Serving int // ready and not changing
	// Changing is the number of pods that are unavailable because of memfit, or may be soon: evicted and not replaced yet,
	// restarted for a resize, or with a lower limit that is not proven.
	Changing int
}

// Availability counts pods, and ignores the change of one pod. wanted is the desired number of pods; 0: the pods
// present, and those evicted and not replaced yet. A terminating pod does not count: on a lost node, it may never end.
func (s *State) Availability(pods []Pod, wanted int, ignored types.UID) Availability {
	disrupted := s.disrupted(pods)
	delete(disrupted, ignored)
	a := Availability{Wanted: len(disrupted), Changing: len(disrupted)}
	for i := range pods {
		pod := &pods[i]
		if pod.Terminating || disrupted[pod.UID] {
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

// Unavailable returns the number of pods that do not serve, or may not soon.
func (a Availability) Unavailable() int { return max(a.Wanted-a.Serving, 0) }

// TooFew returns why no further pod may become unavailable; empty: another pod may.
func (a Availability) TooFew(maxUnavailable int32) string {
	most := int(max(maxUnavailable, 1))
	if a.Unavailable() < most {
		return ""
	}
	return fmt.Sprintf("%d of %s unavailable or missing, %d of them updating: maxUnavailable is %d", a.Unavailable(),
		format.Count(a.Wanted, "pod"), a.Changing, most)
}

func (p *Pod) serves() bool { return p.Ready && !p.Terminating }

// disrupted returns the pods that do not serve because of memfit, or may stop serving.
func (s *State) disrupted(pods []Pod) map[types.UID]bool {
	all := map[types.UID]bool{}
	if s.Restart != nil {
		all[s.Restart.UID] = true
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		lowers := st.Phase == Resizing && lowersAny(st.From, st.To) && (s.Rollout.Decrease || !s.hasLoan(st.UID))
		restarts := st.Phase != Watching && slices.ContainsFunc(pods, func(p Pod) bool {
			return p.UID == st.UID && !p.Terminating && p.restartsFor(st)
		})
		if lowers || restarts || st.evicts() || s.canary(st) {
			all[st.UID] = true
		}
	}
	return all
}
