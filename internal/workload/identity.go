// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// identified is what pods have in common instead of an owner.
type identified struct {
	Platform string   `json:"platform"`
	Values   []string `json:"values"`
	Labels   []string `json:"labels,omitempty"`
	// Seen is the day on which a pod last existed, in Unix seconds: a date costs one write a day.
	Seen int64 `json:"seen"`
}

// identify notes what identifies the workload's pods, and that some exist.
func (st *State) identify(s *Snapshot, now time.Time) {
	if s.Identity != nil {
		day := now.UTC().Truncate(24 * time.Hour)
		st.Identity = &identified{
			Platform: s.Identity.Platform, Values: s.Identity.Values, Labels: s.Identity.Keys, Seen: day.Unix(),
		}
	}
}

// status is what the MemoryRecommendation reports of it; nil: the workload is an owner.
func (i *identified) status() *v1alpha1.PodIdentity {
	if i == nil {
		return nil
	}
	return &v1alpha1.PodIdentity{
		Platform: i.Platform, Values: i.Values, Labels: i.Labels, LastSeen: metav1.NewTime(time.Unix(i.Seen, 0).UTC()),
	}
}
