// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/quote"
)

// Subject has the labels and annotations of a pod, its workload and its namespace.
type Subject struct {
	Namespace string
	// WorkloadKind is the workload's kind in messages ("Deployment"); empty: "workload".
	WorkloadKind string

	PodLabels, PodAnnotations, WorkloadAnnotations, NamespaceAnnotations, NamespaceLabels map[string]string
}

// Problem is why the requested profile does not govern a pod, or that more than one profile matches it.
type Problem string

// The problems.
const (
	// NotFound: the annotation names a profile that does not exist, or one with role Defaults.
	NotFound Problem = "NotFound"
	// Ambiguous: two profiles select the pod; the older one governs it.
	Ambiguous Problem = "Ambiguous"
	// Excluded: memfit.dev/inject is "false" on the pod, its workload or its namespace.
	Excluded Problem = "Excluded"
)

// EventReason returns the reason of the Event about the problem; empty: no Event, because the owner opted out.
func (p Problem) EventReason() string {
	switch p {
	case NotFound:
		return v1alpha1.EventProfileNotFound
	case Ambiguous:
		return v1alpha1.EventProfileAmbiguous
	default:
		return ""
	}
}

// Match is the profile of a pod, or the reason why it has none.
type Match struct {
	Profile *Profile // the pod's profile; nil: none
	// Why is the basis of the match ("annotation memfit.dev/profile on the Deployment"), or the Problem and its fix.
	Why     string
	Problem Problem // empty: one profile matches the pod, or none is requested
	Missing string  // the name of a missing profile in an annotation
	// Claims are the conflicting profiles if the problem is Ambiguous. They contain no text of a pod's owner.
	Claims []*Profile
}

// Match finds the profile that governs s: the one named by an annotation of the pod template, the workload or the
// namespace (in this order), else one that selects the pod. A ClusterMemoryProfile governs only pods of the namespaces
// that its namespaceSelector selects, even if an annotation names it. memfit.dev/inject: "false" on any of the three
// opts out. A MemoryProfile wins over a ClusterMemoryProfile, by name and by selector; if two of the same kind select a
// pod, the older one governs it. The cost depends on the pod's labels and namespace, not on the number of profiles.
func (x *Index) Match(s Subject) Match {
	if where := s.optedOut(); where != "" {
		return Match{
			Problem: Excluded,
			Why:     fmt.Sprintf("excluded by annotation %s: \"false\" on the %s", v1alpha1.InjectAnnotation, where),
		}
	}
	if name, where := s.requested(); name != "" {
		return x.byAnnotation(s, name, where)
	}
	if chosen := x.space(s.Namespace).chosen(s.PodLabels); len(chosen) > 0 {
		return bySelector(chosen)
	}
	if s.Namespace == "" {
		return Match{}
	}
	elsewhere := func(n *Profile) bool { return !n.Reaches(s.NamespaceLabels) }
	return bySelector(slices.DeleteFunc(x.space("").chosen(s.PodLabels), elsewhere))
}

func (x *Index) byAnnotation(s Subject, name, where string) Match {
	by := fmt.Sprintf("annotation %s on the %s", v1alpha1.ProfileAnnotation, where)
	n := x.Find(s.Namespace, name)
	switch {
	case n == nil:
		return Match{Problem: NotFound, Missing: name, Why: fmt.Sprintf("%s names %s, but there is no MemoryProfile of that "+
			"name in namespace %q and no ClusterMemoryProfile: create one or correct the annotation", by, quote.Name(name),
			s.Namespace)}
	case !n.Reaches(s.NamespaceLabels):
		return Match{Problem: NotFound, Why: fmt.Sprintf("%s names %s, whose namespaceSelector (%s) does not match the "+
			"labels of namespace %q: name another profile, or label the namespace", by, n, labelText(n.NamespaceSelector),
			s.Namespace)}
	case n.HoldsDefaults():
		return Match{Problem: NotFound, Why: fmt.Sprintf("%s names %s, which governs no pod: its role is Defaults, and "+
			"other profiles inherit from it; name one of those", by, n)}
	}
	return Match{Profile: n, Why: by}
}

func bySelector(chosen []*Profile) Match {
	switch len(chosen) {
	case 0:
		return Match{}
	case 1:
		return Match{Profile: chosen[0], Why: "selector " + selectorText(chosen[0])}
	}
	var older *Profile
	for _, n := range chosen {
		older = elder(older, n)
	}
	named := make([]string, 0, claimsNamed+1)
	for _, n := range chosen[:min(len(chosen), claimsNamed)] {
		named = append(named, fmt.Sprintf("%s (selector %s)", n, selectorText(n)))
	}
	if more := len(chosen) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	how := "both choose"
	if len(chosen) > 2 {
		how = "all choose"
	}
	return Match{Profile: older, Problem: Ambiguous, Claims: chosen, Why: fmt.Sprintf(
		"%s %s this pod, and the older one, %s, takes effect: narrow a selector, or name one with annotation %s",
		strings.Join(named, " and "), how, older, v1alpha1.ProfileAnnotation)}
}

// claimsNamed bounds the profiles named in a message: thousands may select one pod, and a condition holds 32 KiB.
const claimsNamed = 3

func selectorText(n *Profile) string {
	text := labelText(n.Spec.Selector)
	if text == "" {
		text = "{} (every pod)"
	}
	if n.NamespaceSelector != nil {
		text += ", namespaceSelector " + cmp.Or(labelText(n.NamespaceSelector), "{} (every namespace)")
	}
	return text
}

// labelText formats a selector like kubectl; empty: it matches everything.
func labelText(selector *metav1.LabelSelector) string {
	if text := metav1.FormatLabelSelector(selector); text != "<none>" {
		return quote.Line(text)
	}
	return ""
}

// requested returns the profile name in the nearest annotation, and the annotation's place. It ignores empty values.
func (s Subject) requested() (name, where string) {
	for _, p := range s.places() {
		if name := strings.TrimSpace(p.annotations[v1alpha1.ProfileAnnotation]); name != "" {
			return name, p.name
		}
	}
	return "", ""
}

// optedOut returns the nearest place with memfit.dev/inject: "false"; empty: none.
func (s Subject) optedOut() string {
	for _, p := range s.places() {
		value, ok := p.annotations[v1alpha1.InjectAnnotation]
		if !ok {
			continue
		}
		if inject, err := strconv.ParseBool(strings.TrimSpace(value)); err == nil && !inject {
			return p.name
		}
	}
	return ""
}

type place struct {
	name        string
	annotations map[string]string
}

// places returns the places of annotations, nearest to the pod first.
func (s Subject) places() [3]place {
	return [3]place{
		{"pod template", s.PodAnnotations}, {cmp.Or(s.WorkloadKind, "workload"), s.WorkloadAnnotations},
		{"Namespace", s.NamespaceAnnotations},
	}
}
