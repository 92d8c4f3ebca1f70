// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// present distinguishes the pods that existed at an eviction from those created after it. Creation times are whole
// seconds of the API server's clock, so UIDs distinguish pods of the same second.
type present struct {
	Newest time.Time   `json:"newest,omitzero"` // the latest creation time
	UIDs   []types.UID `json:"uids,omitempty"`  // of the pods created at that time
}

// maxPresent bounds the UIDs, of 40 bytes each. If more pods were created in one second, all pods of that second count
// as present.
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

// isNewer reports whether a pod was created after all pods in p.
func (p present) isNewer(pod *Pod) bool {
	if created := toSeconds(pod.Created); !created.Equal(p.Newest) {
		return created.After(p.Newest)
	}
	return !slices.Contains(p.UIDs, pod.UID)
}
