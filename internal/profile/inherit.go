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

// GivesDefaults reports whether the profile is one of role Defaults, which governs no pod.
func (n *Profile) GivesDefaults() bool { return n.Spec != nil && n.Spec.Role == v1alpha1.RoleDefaults }

// Declared is what the profile itself says, without what it inherits.
func (n *Profile) Declared() *v1alpha1.MemoryProfileSpec {
	if n.own != nil {
		return n.own
	}
	return n.Spec
}

// From are the profiles with role Defaults whose values it takes where it leaves them open, the nearest first.
func (n *Profile) From() []*Profile { return n.from }

// Clashes says where what the profile says and what it inherits cannot hold together, each with what to change. As
// long as there is one, no size is changed: which of the two bounds is meant, somebody has to say.
func (n *Profile) Clashes() []string { return n.clashes }

// Inherited tells apart what a profile inherited at different times; empty: nothing.
func (n *Profile) Inherited() string { return n.inherited }

// Inherit fills in, for each of the profiles, what it takes from those with role Defaults among them: a MemoryProfile
// from its namespace's and then from the cluster's, a ClusterMemoryProfile from the cluster's only, because an owner of
// a namespace must not weaken what the platform says for the pods that its own profile governs. Whoever has no
// [NewIndex] of them calls it, once; afterwards they are only read.
func Inherit(profiles []*Profile) {
	giving := map[string]*Profile{}
	for _, n := range profiles {
		if n.GivesDefaults() {
			giving[n.Namespace] = elder(giving[n.Namespace], n)
		}
	}
	for _, n := range profiles {
		n.inherit(giving)
	}
}

// elder is the one of two that counts: a second one that somebody creates by mistake changes nothing. Neither would be
// worse, because profiles would lose a limit.max or a tuning.mode that they rely on.
func elder(a, b *Profile) *Profile {
	if a == nil || cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Ref.Name, a.Ref.Name)) < 0 {
		return b
	}
	return a
}

func (n *Profile) inherit(giving map[string]*Profile) {
	if n.Spec == nil || n.GivesDefaults() {
		return
	}
	own := n.Declared()
	n.Spec, n.from, n.clashes, n.held, n.inherited = own, nil, nil, false, ""
	if d := giving[n.Namespace]; d != nil {
		n.from = append(n.from, d)
	}
	if d := giving[""]; d != nil && n.Namespace != "" {
		n.from = append(n.from, d)
	}
	defer n.mergeContainers()
	merged, said := *own, make([]string, 0, len(n.from))
	for _, d := range n.from {
		merged = under(merged, d.Spec)
		said = append(said, fmt.Sprintf("%s/%s/%d", d, d.UID, d.Generation))
	}
	n.own, n.Spec, n.inherited = own, &merged, strings.Join(said, " ")
	if n.clashes = n.contradictions(); len(n.clashes) == 0 {
		if len(n.from) == 0 {
			n.Spec = own
		}
		return
	}
	if merged.Sizing.Mode.SizesNewPods() {
		merged.Sizing.Mode, n.held = v1alpha1.SizingRecommend, true
	}
}

// contradictions are what the rules of the API would refuse if one profile said all that is effective for a container:
// with what it inherits, or an entry with what the profile says for all. What a profile says alone, such as a schedule
// that cannot be read, is reported by [Invalid].
func (n *Profile) contradictions() []string {
	own := refused(n.own)
	var out []string
	say := func(texts ...string) {
		for _, text := range texts {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	places := []string{""}
	for _, e := range n.Spec.Containers {
		places = append(places, e.Name)
	}
	for _, container := range places {
		say(n.boundsClash(container)...)
	}
	s := n.policyFor(nil).sizing
	if s.Increase == v1alpha1.IncreaseAfterKill && s.Decrease != v1alpha1.DecreaseNever {
		say(fmt.Sprintf(
			"sizing.increase: AfterKill (%s) needs sizing.decrease: Never, but it is %s (%s): a limit that memfit lowers would "+
				"be raised again only after a kill; change one of them",
			n.origin("", "sizing.increase"), s.Decrease, n.origin("", "sizing.decrease"),
		))
	}
	for _, text := range refused(n.Spec) {
		if !slices.Contains(own, text) {
			say(text + " (" + n.inheritsFrom() + ")")
		}
	}
	return out
}

// inheritsFrom names where values that it does not say itself are from.
func (n *Profile) inheritsFrom() string {
	names := make([]string, 0, len(n.from))
	for _, d := range n.from {
		names = append(names, d.String())
	}
	return "with what it inherits from " + strings.Join(names, " and ")
}

// boundsClash finds bounds for a container between which no size is; "" is one without an entry. A bound that
// is not stated is not part of it.
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
