// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
)

// HoldsDefaults reports whether the profile has role Defaults, which governs no pod.
func (n *Profile) HoldsDefaults() bool { return n.Spec != nil && n.Spec.Role == v1alpha1.RoleDefaults }

// Declared returns the profile's own spec, without defaults.
func (n *Profile) Declared() *v1alpha1.MemoryProfileSpec {
	if n.own != nil {
		return n.own
	}
	return n.Spec
}

// From returns the profiles from which n inherits unset values, the nearest first.
func (n *Profile) From() []*Profile { return n.from }

// Clashes returns the contradictions between the profile and its defaults, each with what to change. memfit changes no
// size until a user has resolved them.
func (n *Profile) Clashes() []string { return n.clashes }

// Inherited returns a string that changes with the inherited values; empty: none.
func (n *Profile) Inherited() string { return n.inherited }

// Inherit merges each profile with the profiles of role Defaults among them: a MemoryProfile with its namespace's and
// then the cluster's, a ClusterMemoryProfile only with the cluster's, because an owner of a namespace must not weaken
// it. [NewIndex] calls it. Do not change the profiles afterwards.
func Inherit(profiles []*Profile) {
	giving := map[string]*Profile{}
	for _, n := range profiles {
		if n.HoldsDefaults() {
			giving[n.Namespace] = elder(giving[n.Namespace], n)
		}
	}
	for _, n := range profiles {
		n.inherit(giving)
	}
}

// elder returns the older of two profiles; the younger one, created by mistake or during a rename, has no effect. Using
// neither would be worse: pods would lose the limit that they need, and profiles a limit.max or tuning.mode.
func elder(a, b *Profile) *Profile {
	if a == nil || cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Ref.Name, a.Ref.Name)) < 0 {
		return b
	}
	return a
}

func (n *Profile) inherit(giving map[string]*Profile) {
	if n.Spec == nil || n.HoldsDefaults() {
		return
	}
	own := n.Declared()
	n.Spec, n.from, n.clashes, n.suspended, n.inherited = own, nil, nil, false, ""
	if d := giving[n.Namespace]; d != nil {
		n.from = append(n.from, d)
	}
	if d := giving[""]; d != nil && n.Namespace != "" {
		n.from = append(n.from, d)
	}
	defer n.mergeContainers()
	merged, versions := *own, make([]string, 0, len(n.from))
	for _, d := range n.from {
		merged = under(merged, d.Spec)
		versions = append(versions, fmt.Sprintf("%s/%s/%d", d, d.UID, d.Generation))
	}
	n.own, n.Spec, n.inherited = own, &merged, strings.Join(versions, " ")
	if n.clashes = n.contradictions(); len(n.clashes) == 0 {
		if len(n.from) == 0 {
			n.Spec = own
		}
		return
	}
	if merged.Sizing.Mode.SizesNewPods() {
		merged.Sizing.Mode, n.suspended = v1alpha1.SizingRecommend, true
	}
}

// contradictions returns violations of the API's rules by the merged policy of a container: the profile with its
// defaults, or an entry with the profile. [Invalid] reports errors of the profile alone, such as an invalid schedule.
func (n *Profile) contradictions() []string {
	own := ineffective(n.own)
	var out []string
	add := func(texts ...string) {
		for _, text := range texts {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	add(n.boundsClash("")...)
	for _, e := range n.Spec.Containers {
		add(n.boundsClash(e.Name)...)
	}
	s := n.policyFor(nil).sizing
	if s.Increase == v1alpha1.IncreaseAfterKill && s.Decrease != v1alpha1.DecreaseNever {
		add(fmt.Sprintf("sizing.increase: AfterKill (%s) needs sizing.decrease: Never, but it is %s (%s): a limit that "+
			"memfit lowers would be raised again only after a kill; change one of them",
			n.origin("", "sizing.increase"), s.Decrease, n.origin("", "sizing.decrease")))
	}
	var from []string
	for _, d := range n.from {
		from = append(from, d.String())
	}
	for _, text := range ineffective(n.Spec) {
		if !slices.Contains(own, text) {
			add(text + " (with what it inherits from " + strings.Join(from, " and ") + ")")
		}
	}
	return out
}

// boundsClash returns the bounds of a container that exclude every size; "": a container without an entry.
func (n *Profile) boundsClash(container string) []string {
	entry, _ := n.entry(container)
	s := stated(n.Spec, entry).Sizing
	limit, request := orPointer(s.Limit, &v1alpha1.Bounds{}), orPointer(s.Request, &v1alpha1.Bounds{})
	var out []string
	for _, pair := range []struct {
		lowField, highField string
		low, high           *v1alpha1.MemoryQuantity
	}{
		{"limit.min", "limit.max", limit.Min, limit.Max},
		{"request.min", "request.max", request.Min, request.Max},
		{"request.min", "limit.max", request.Min, limit.Max},
	} {
		if pair.low == nil || pair.high == nil || pair.low.Cmp(pair.high.Quantity) <= 0 {
			continue
		}
		low, high := "sizing."+pair.lowField, "sizing."+pair.highField
		out = append(out, fmt.Sprintf("%s %s (%s) is above %s %s (%s), so that no size fits and none is changed: lower the "+
			"first, or raise the second", low, pair.low, n.origin(container, low), high, pair.high, n.origin(container, high)))
	}
	return out
}
