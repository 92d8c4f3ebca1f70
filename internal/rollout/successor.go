// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// present distinguishes the pods that existed at an eviction from those created after it. Its only clock is the API
// server's, in whole seconds: a pod of the same second may be the successor of an earlier eviction, or of this one.
type present struct {
	Newest time.Time   `json:"newest,omitzero"` // the last time of creation
	UIDs   []types.UID `json:"uids,omitempty"`  // of the pods created then
}

// maxPresent bounds the UIDs: 40 bytes each. If more pods were created in one second, all of that second count as
// present.
const maxPresent = 8

func presentOf(pods []Pod) present {
	var p present
	for i := range pods {
		switch created := toSeconds(pods[i].Created); {
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

// isNewer reports whether a pod was created after all of p.
func (p present) isNewer(pod *Pod) bool {
	if created := toSeconds(pod.Created); !created.Equal(p.Newest) {
		return created.After(p.Newest)
	}
	return !slices.Contains(p.UIDs, pod.UID)
}
