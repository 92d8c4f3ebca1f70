// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"iter"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Kinds of profile, as in [v1alpha1.ProfileReference].
const (
	KindNamespaced = "MemoryProfile"
	KindCluster    = "ClusterMemoryProfile"
)

// Key names one profile; the namespace is empty for a ClusterMemoryProfile.
type Key struct{ Kind, Namespace, Name string }

// String returns "MemoryProfile shop/web" or "ClusterMemoryProfile web".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Profile is one profile. It must not change after [NewIndex].
type Profile struct {
	// Ref is MemoryProfile or ClusterMemoryProfile and the name.
	Ref v1alpha1.ProfileReference
	// Namespace is empty for a ClusterMemoryProfile.
	Namespace string
	// UID is metadata.uid: with the generation, it identifies the spec. Empty outside a cluster.
	UID types.UID
	// Generation is metadata.generation, so that what was injected can be traced to the spec it came from.
	Generation int64
	// Created is metadata.creationTimestamp, which decides between two profiles that match the same.
	Created time.Time
	// NamespaceSelector limits a ClusterMemoryProfile to namespaces by label; nil: every namespace.
	NamespaceSelector *metav1.LabelSelector
	// Spec is the effective spec: the profile's own and, after [NewIndex] or [Inherit], its defaults. Shared: do not
	// change it.
	Spec *v1alpha1.MemoryProfileSpec

	// own is the profile's own spec; nil: Spec, because it inherits nothing.
	own *v1alpha1.MemoryProfileSpec
	// namespaces is NamespaceSelector, compiled by [NewIndex]; nil if invalid.
	namespaces labels.Selector
	from       []*Profile
	clashes    []string
	held       bool // its sizing.mode would change sizes without the clashes
	inherited  string
	// effective has the effective policies of containers by the name of their entry; "": without one. It was merged from
	// mergedFrom, and is invalid for another Spec.
	effective  map[string]policy
	mergedFrom *v1alpha1.MemoryProfileSpec
}

// Of returns a MemoryProfile as a profile. It shares the spec.
func Of(p *v1alpha1.MemoryProfile) Profile { return profileOf(KindNamespaced, &p.ObjectMeta, &p.Spec) }

// OfCluster returns a ClusterMemoryProfile as a profile. It shares the spec.
func OfCluster(p *v1alpha1.ClusterMemoryProfile) Profile {
	n := profileOf(KindCluster, &p.ObjectMeta, &p.Spec.MemoryProfileSpec)
	n.NamespaceSelector = p.Spec.NamespaceSelector
	return n
}

func profileOf(kind string, meta *metav1.ObjectMeta, spec *v1alpha1.MemoryProfileSpec) Profile {
	return Profile{
		Ref: v1alpha1.ProfileReference{Kind: kind, Name: meta.Name}, Namespace: meta.Namespace, UID: meta.UID,
		Generation: meta.Generation, Created: meta.CreationTimestamp.Time, Spec: spec,
	}
}

// Reaches reports whether the profile may govern pods of a namespace with these labels. The profile must be of an
// [Index].
func (n *Profile) Reaches(namespaceLabels map[string]string) bool {
	return n.NamespaceSelector == nil || n.namespaces != nil && n.namespaces.Matches(labels.Set(namespaceLabels))
}

// Key names the profile.
func (n *Profile) Key() Key { return Key{n.Ref.Kind, n.Namespace, n.Ref.Name} }

func (n *Profile) String() string { return n.Key().String() }

// Index finds the profile of a pod without reading profiles of other namespaces. It is immutable and safe for
// concurrent use: build a new one after a change. The zero value and nil are empty.
type Index struct {
	// spaces holds each namespace's profiles; the cluster's own are under "".
	spaces map[string]*space
}

// space is the profiles of one namespace.
type space struct {
	byName map[string]*Profile
	// defaults is the effective profile with role Defaults.
	defaults *Profile
	// byLabel finds the selectors that can only match pods with that label; the rest require no exact label.
	byLabel map[label][]chooser
	rest    []chooser
}

type label struct{ key, value string }

// chooser is a profile that selects pods by label.
type chooser struct {
	profile  *Profile
	selector labels.Selector
}

// NewIndex compiles the selectors of profiles: about 5 µs each, so 10k profiles are rebuilt in some 50 ms. An invalid
// selector selects nothing; [Invalid] returns why. It merges each profile with its defaults, here and not for each pod.
func NewIndex(profiles []Profile) *Index {
	x := &Index{spaces: make(map[string]*space)}
	all := make([]*Profile, len(profiles))
	for i := range profiles {
		all[i] = &profiles[i]
	}
	Inherit(all)
	for _, n := range all {
		x.add(n)
	}
	return x
}

func (x *Index) add(n *Profile) {
	s := x.spaces[n.Namespace]
	if s == nil {
		s = &space{byName: make(map[string]*Profile), byLabel: make(map[label][]chooser)}
		x.spaces[n.Namespace] = s
	}
	s.byName[n.Ref.Name] = n
	if n.NamespaceSelector != nil {
		n.namespaces, _ = metav1.LabelSelectorAsSelector(n.NamespaceSelector) // [Profile.Invalid] reports the error
	}
	if n.GivesDefaults() {
		s.defaults = elder(s.defaults, n)
	}
	if n.Spec == nil || n.Spec.Selector == nil || n.GivesDefaults() {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(n.Spec.Selector)
	if err != nil {
		return
	}
	s.choose(chooser{profile: n, selector: selector}, n.Spec.Selector)
}

// choose adds c under its required label that the fewest other selectors require, so that a common label (team=shop)
// does not put all in one list.
func (s *space) choose(c chooser, spec *metav1.LabelSelector) {
	var best label
	found := false
	for _, l := range required(spec) {
		if !found || len(s.byLabel[l]) < len(s.byLabel[best]) {
			best, found = l, true
		}
	}
	if !found {
		s.rest = append(s.rest, c)
		return
	}
	s.byLabel[best] = append(s.byLabel[best], c)
}

// required returns the exact labels that a pod must have for spec to match, sorted, so that equal input gives an equal
// index.
func required(spec *metav1.LabelSelector) []label {
	var out []label
	for k, v := range spec.MatchLabels {
		out = append(out, label{k, v})
	}
	for _, e := range spec.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1 {
			out = append(out, label{e.Key, e.Values[0]})
		}
	}
	slices.SortFunc(out, func(a, b label) int {
		return strings.Compare(a.key+"="+a.value, b.key+"="+b.value)
	})
	return out
}

// Find returns the MemoryProfile of that name in namespace, else the ClusterMemoryProfile of that name, else nil.
func (x *Index) Find(namespace, name string) *Profile {
	if n := x.space(namespace).get(name); n != nil || namespace == "" {
		return n
	}
	return x.space("").get(name)
}

// All returns the profiles of the index, in no particular order.
func (x *Index) All() iter.Seq[*Profile] {
	return func(yield func(*Profile) bool) {
		if x == nil {
			return
		}
		for _, s := range x.spaces {
			for _, n := range s.byName {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// Defaults returns the effective profile with role Defaults of a namespace, of the cluster with ""; nil: none.
func (x *Index) Defaults(namespace string) *Profile {
	if s := x.space(namespace); s != nil {
		return s.defaults
	}
	return nil
}

// Inheriting returns a profile merged with the defaults of the index.
func (x *Index) Inheriting(n Profile) *Profile {
	giving := map[string]*Profile{}
	for _, namespace := range []string{n.Namespace, ""} {
		if d := x.Defaults(namespace); d != nil {
			giving[namespace] = d
		}
	}
	n.inherit(giving)
	return &n
}

// Heirs returns the number of profiles that inherit from n.
func (x *Index) Heirs(n *Profile) int {
	count := 0
	for other := range x.All() {
		if slices.Contains(other.from, n) {
			count++
		}
	}
	return count
}

// Exactly returns the profile with that kind, namespace and name; nil: none.
func (x *Index) Exactly(k Key) *Profile { return x.space(k.Namespace).get(k.Name) }

func (x *Index) space(namespace string) *space {
	if x == nil {
		return nil
	}
	return x.spaces[namespace]
}

func (s *space) get(name string) *Profile {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// chosen returns the profiles of this space whose selector matches; nil, without an allocation, for most pods.
func (s *space) chosen(pod map[string]string) []*Profile {
	if s == nil {
		return nil
	}
	var out []*Profile
	match := func(choosers []chooser) {
		for i := range choosers {
			if choosers[i].selector.Matches(labels.Set(pod)) {
				out = append(out, choosers[i].profile)
			}
		}
	}
	match(s.rest)
	if len(s.byLabel) > 0 {
		for k, v := range pod {
			match(s.byLabel[label{k, v}])
		}
	}
	slices.SortFunc(out, func(a, b *Profile) int { return strings.Compare(a.Ref.Name, b.Ref.Name) })
	return out
}
