// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
	"github.com/memfit/memfit/test/budget"
)

// annotationBudget is what the annotations of a pod may take.
var annotationBudget = budget.Budget{Bytes: 256 << 10, PerByte: 16, CPU: time.Second}

// mostSaid is what may be said of annotations, in bytes: a condition's message has room for ten of these.
const mostSaid = 3 << 10

// FuzzAnnotations: whoever may annotate a pod decides which of the profiles of its namespace governs it and what runs
// in it, and nothing else. What is said about it is short and on one line.
func FuzzAnnotations(f *testing.F) {
	f.Add("web", "true", "JVM:17.0.9", "")
	f.Add(" web ", "F", "nodejs : 20", "cluster")
	f.Add("no\nsuch", "false", "jvm:"+strings.Repeat("1.", 1000), "\xff")
	f.Add(strings.Repeat("x", 1000), "", strings.Repeat("\u2028", 500), "other/web")
	x := NewIndex([]Profile{*of(v1alpha1.MemoryProfileSpec{}),
		{Ref: v1alpha1.ProfileReference{Kind: "ClusterMemoryProfile", Name: "cluster"}, Spec: &v1alpha1.MemoryProfileSpec{}},
		{Ref: v1alpha1.ProfileReference{Kind: KindNamespaced, Name: "web"}, Namespace: "other",
			Spec: &v1alpha1.MemoryProfileSpec{}}})
	checkAnnotations(f, x, "p", "", "Go", "p") // what is made once per process is no part of the budget
	f.Fuzz(func(t *testing.T, name, inject, runtime, onNamespace string) {
		budget.Check(
			t, annotationBudget, len(name+inject+runtime+onNamespace),
			func() { checkAnnotations(t, x, name, inject, runtime, onNamespace) },
		)
	})
}

func checkAnnotations(t testing.TB, x *Index, name, inject, runtime, onNamespace string) {
	t.Helper()
	s := Subject{
		Namespace: "shop",
		PodAnnotations: map[string]string{
			v1alpha1.ProfileAnnotation: name, v1alpha1.InjectAnnotation: inject, v1alpha1.RuntimeAnnotation: runtime,
		},
		NamespaceAnnotations: map[string]string{v1alpha1.ProfileAnnotation: onNamespace},
	}
	d := x.Match(s)
	said := []string{d.Why}
	if p := d.Profile; p != nil {
		if p.Namespace != "" && p.Namespace != "shop" || p.Ref.Name != strings.TrimSpace(name) &&
			p.Ref.Name != strings.TrimSpace(onNamespace) {
			t.Errorf("%q and %q choose %s", name, onNamespace, p)
		}
		c := p.Container("app", s.PodAnnotations)
		known := runtimes.Lookup(string(c.Runtime.Type)).Name
		if known != string(c.Runtime.Type) || len(c.Runtime.Version) > 32 {
			t.Errorf("%q declares %+v", runtime, c.Runtime)
		}
		said = append(said, c.Notes...)
	}
	for _, text := range said {
		if len(text) > mostSaid || strings.ContainsFunc(
			text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) },
		) {
			t.Errorf("said in %d bytes: %.4000q", len(text), text)
		}
	}
}

// TestManyClaimsAreSaidBriefly: a condition takes 32 KiB, and whoever may write profiles may write thousands.
func TestManyClaimsAreSaidBriefly(t *testing.T) {
	var many []Profile
	for i := range 5000 {
		n := *of(v1alpha1.MemoryProfileSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
		n.Ref.Name = fmt.Sprintf("%s-%d", strings.Repeat("p", 240), i)
		many = append(many, n)
	}
	d := NewIndex(many).Match(Subject{Namespace: "shop", PodLabels: map[string]string{"app": "web"}})
	if d.Problem != Ambiguous || len(d.Claims) != len(many) || len(d.Why) > mostSaid ||
		!strings.Contains(d.Why, "and 4997 more") {
		t.Errorf("%s, %d claims, said in %d bytes: %.300s", d.Problem, len(d.Claims), len(d.Why), d.Why)
	}
}
