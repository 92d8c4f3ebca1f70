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
	Ref       v1alpha1.ProfileReference // MemoryProfile or ClusterMemoryProfile and the name
	Namespace string                    // empty for a ClusterMemoryProfile
	// UID is metadata.uid: with the generation, it identifies the spec. Empty outside a cluster.
	UID        types.UID
	Generation int64     // metadata.generation, which identifies the spec from which settings were injected
	Created    time.Time // metadata.creationTimestamp: of two profiles that match a pod, the older takes effect
	// NamespaceSelector limits a ClusterMemoryProfile to namespaces by label; nil: every namespace.
	NamespaceSelector *metav1.LabelSelector
	// Spec is the effective spec, after [NewIndex] or [Inherit] with defaults. It is shared: do not change it.
	Spec *v1alpha1.MemoryProfileSpec

	own        *v1alpha1.MemoryProfileSpec // the profile's own spec; nil: Spec, because it inherits nothing
	namespaces labels.Selector             // NamespaceSelector, compiled by [NewIndex]; nil if invalid
	from       []*Profile                  // see From
	clashes    []string                    // see Clashes
	suspended  bool                        // clashes replace the declared sizing.mode by Recommend
	inherited  string                      // see Inherited
	// effective has the policies of containers, by the name of their entry ("": no entry), merged from mergedFrom.
	effective  map[string]policy
	mergedFrom *v1alpha1.MemoryProfileSpec // the cache is stale if Spec is another one
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

// Reaches reports whether a profile of an [Index] may govern pods of a namespace with these labels.
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

// space holds the profiles of one namespace.
type space struct {
	byName   map[string]*Profile
	defaults *Profile // the effective profile with role Defaults
	// byLabel holds the selectors that match only pods with that label; rest holds those that require no exact label.
	byLabel map[label][]chooser
	rest    []chooser
}

type label struct{ key, value string }

// chooser is a profile that selects pods by label.
type chooser struct {
	profile  *Profile
	selector labels.Selector
}

// NewIndex compiles the selectors of profiles, and merges each profile with its defaults: 50 ms for 10,000 profiles. An
// invalid selector selects nothing; [Invalid] returns why.
func NewIndex(profiles []Profile) *Index {
	x := &Index{spaces: make(map[string]*space)}
	var all []*Profile
	for i := range profiles {
		all = append(all, &profiles[i])
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
	if n.HoldsDefaults() {
		s.defaults = elder(s.defaults, n)
	}
	if n.Spec == nil || n.Spec.Selector == nil || n.HoldsDefaults() {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(n.Spec.Selector)
	if err != nil {
		return
	}
	s.choose(chooser{profile: n, selector: selector}, n.Spec.Selector)
}

// choose adds c under that of its required labels with the shortest list, so that no list becomes long.
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

// required returns the exact labels that a pod must have to match spec, sorted, so that the index is deterministic.
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
	slices.SortFunc(out, func(a, b label) int { return strings.Compare(a.key+"="+a.value, b.key+"="+b.value) })
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

// Defaults returns the effective profile with role Defaults of a namespace ("": of the cluster); nil: none.
func (x *Index) Defaults(namespace string) *Profile {
	if s := x.space(namespace); s != nil {
		return s.defaults
	}
	return nil
}

// Inheriting returns a profile merged with the defaults of the index.
func (x *Index) Inheriting(n Profile) *Profile {
	n.inherit(map[string]*Profile{n.Namespace: x.Defaults(n.Namespace), "": x.Defaults("")})
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

// Get returns the profile with that kind, namespace and name; nil: none.
func (x *Index) Get(k Key) *Profile { return x.space(k.Namespace).get(k.Name) }

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

// chosen returns the profiles in s that select a pod with these labels; nil, without an allocation, for most pods.
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
