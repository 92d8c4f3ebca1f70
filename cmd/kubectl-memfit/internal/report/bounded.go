// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
)

// Governing finds a recommendation's profile; nil when it is gone or could not be read.
func Governing(rec *v1alpha1.MemoryRecommendation, profiles []Profile) *profile.Profile {
	for i := range profiles {
		if n := &profiles[i].Profile; n.Ref == rec.Status.Profile && (n.Namespace == "" || n.Namespace == rec.Namespace) {
			return n
		}
	}
	return nil
}

// Bound limits the recommended sizes to the present bounds of their profiles, as the webhook does, and adds that to
// the reasons: a profile may have changed since memfit wrote the recommendation.
func Bound(recs []v1alpha1.MemoryRecommendation, profiles []Profile) {
	for i := range recs {
		governing := Governing(&recs[i], profiles)
		if governing == nil {
			continue
		}
		for j := range recs[i].Status.Containers {
			bound(&recs[i].Status.Containers[j], governing)
		}
	}
}

func bound(c *v1alpha1.ContainerRecommendation, governing *profile.Profile) {
	if c.Recommended == nil {
		return
	}
	container := governing.Container(c.Container, nil)
	policy := container.SizePolicy()
	size, why := policy.Bound(profile.SizeOf(*c.Recommended), profile.SizeOf(c.Current))
	if len(why) == 0 {
		return
	}
	api := profile.APISize(size)
	c.Recommended = &api
	for _, text := range why {
		c.Reasons = append(c.Reasons, "the profile has changed since: "+text)
	}
}
