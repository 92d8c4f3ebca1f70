// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// present distinguishes the pods that existed when one was evicted from those that came after it. It uses the clock of
// the API server alone, which is not memfit's, and has whole seconds: a pod that is ready in the second of its
// creation was taken for the successor of the next one as well, which was evicted in that second, so that a third was
// evicted while only one of three served.
type present struct {
	// Newest is when the youngest of them was created. UIDs are those created in that second.
	Newest time.Time   `json:"newest,omitzero"`
	UIDs   []types.UID `json:"uids,omitempty"`
}

// maxPresent bounds the UIDs: 40 bytes each. When more pods were created in one second, those created in it count as
// present, whatever their UID: an eviction comes no sooner than one of them is ready.
const maxPresent = 8

func presentOf(pods []Pod) present {
	var p present
	for i := range pods {
		switch created := stamp(pods[i].Created); {
		case created.After(p.Newest):
			p = present{Newest: created, UIDs: []types.UID{pods[i].UID}}
		case created.Equal(p.Newest):
			p.UIDs = append(p.UIDs, pods[i].UID)
		}
	}
	if len(p.UIDs) > maxPresent {
		p = present{Newest: p.Newest.Add(time.Second)}
	}
	return p
}

// before reports whether a pod was created after all of p.
func (p present) before(pod *Pod) bool {
	if created := stamp(pod.Created); !created.Equal(p.Newest) {
		return created.After(p.Newest)
	}
	return !slices.Contains(p.UIDs, pod.UID)
}
