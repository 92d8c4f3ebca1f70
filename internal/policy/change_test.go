// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
)

func TestChanges(t *testing.T) {
	choosing := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	index := func(generation int64, uid, app string) *profile.Index {
		return profile.NewIndex([]profile.Profile{
			profile.Of(&v1alpha1.MemoryProfile{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: generation, UID: types.UID(uid)},
				Spec:       v1alpha1.MemoryProfileSpec{Selector: choosing(app)},
			}),
			profile.OfCluster(&v1alpha1.ClusterMemoryProfile{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1, UID: "c"},
			}),
		})
	}
	web := Change{Key: profile.Key{Kind: profile.KindNamespaced, Namespace: "shop", Name: "web"}}
	chooses := web
	chooses.SelectionChanged = true
	both := []Change{{Key: profile.Key{Kind: profile.KindCluster, Name: "web"}, SelectionChanged: true}, chooses}
	under := func(generation int64, role v1alpha1.ProfileRole) *profile.Index {
		return profile.NewIndex([]profile.Profile{
			profile.Of(&v1alpha1.MemoryProfile{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1, UID: "a"},
			}),
			profile.OfCluster(&v1alpha1.ClusterMemoryProfile{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: generation, UID: "c"},
				Spec: v1alpha1.ClusterMemoryProfileSpec{
					MemoryProfileSpec: v1alpha1.MemoryProfileSpec{Role: role},
				},
			}),
		})
	}
	base := Change{Key: profile.Key{Kind: profile.KindCluster, Name: "web"}}
	chosen := base
	chosen.SelectionChanged = true
	for what, tc := range map[string]struct {
		before, after *profile.Index
		want          []Change
	}{
		"the first":              {nil, index(1, "a", "web"), both},
		"nothing":                {index(1, "a", "web"), index(1, "a", "web"), nil},
		"an edit":                {index(1, "a", "web"), index(2, "a", "web"), []Change{web}},
		"another selector":       {index(1, "a", "web"), index(2, "a", "api"), []Change{chooses}},
		"deleted and made again": {index(1, "a", "web"), index(1, "b", "web"), []Change{chooses}},
		"an edit of what it inherits": {
			under(1, v1alpha1.RoleDefaults), under(2, v1alpha1.RoleDefaults), []Change{base, web},
		},
		"another role": {under(1, v1alpha1.RoleProfile), under(2, v1alpha1.RoleDefaults), []Change{chosen, web}},
		"all gone":     {index(1, "a", "web"), profile.NewIndex(nil), both},
	} {
		got := changes(tc.before, tc.after)
		slices.SortFunc(got, func(a, b Change) int { return len(a.Namespace) - len(b.Namespace) })
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %+v, want %+v", what, got, tc.want)
		}
	}
}
