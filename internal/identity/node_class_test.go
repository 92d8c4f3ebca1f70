// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

func TestNodeOf(t *testing.T) {
	pinned := func(nodes ...string) *corev1.Affinity {
		var terms []corev1.NodeSelectorTerm
		for _, name := range nodes {
			of := PinnedTo(name).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			terms = append(terms, of...)
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	either := pinned("a")
	terms := either.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	terms[0].MatchFields[0].Values = []string{"a", "b"}
	except := pinned("a")
	except.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Operator =
		corev1.NodeSelectorOpNotIn
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"it runs":                        {corev1.PodSpec{NodeName: "b", Affinity: pinned("a")}, "b"},
		"its controller has chosen":      {corev1.PodSpec{Affinity: pinned("a")}, "a"},
		"each alternative has that node": {corev1.PodSpec{Affinity: pinned("a", "a")}, "a"},
		"alternatives differ":            {corev1.PodSpec{Affinity: pinned("a", "b")}, ""},
		"one of two":                     {corev1.PodSpec{Affinity: either}, ""},
		"all but one":                    {corev1.PodSpec{Affinity: except}, ""},
		"no node affinity":               {corev1.PodSpec{Affinity: &corev1.Affinity{}}, ""},
		"preferences only": {
			corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, "",
		},
		"any node": {corev1.PodSpec{}, ""},
	} {
		if got := NodeOf(&corev1.Pod{Spec: tc.spec}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestInClass(t *testing.T) {
	const label = "node.kubernetes.io/instance-type"
	log := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "kube-system", Name: "log"}
	in, id := InClass(log, label, "m5.large")
	if id == nil || id.String() != "daemonset/log [m5.large]" || in.String() != "DaemonSet kube-system/log/m5.large" ||
		in.Whole() != log || NodeClassOf(id.Platform, id.Values) != "m5.large" || IsIdentity(in) {
		t.Fatalf("%v with identity %v", in, id)
	}
	if again, _ := InClass(in, label, "m5.xlarge"); again.NodeClass != "m5.xlarge" || again.Whole() != log {
		t.Errorf("on another node: %v", again)
	}
	web := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	advanced := memory.WorkloadRef{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet", Namespace: "shop", Name: "web",
	}
	for name, tc := range map[string]struct {
		of           memory.WorkloadRef
		label, value string
	}{
		"no label in the profile": {log, "", "m5.large"}, "no value on the node": {in, label, ""},
		"a Deployment": {web, label, "m5.large"}, "another group's DaemonSet": {advanced, label, "m5.large"},
	} {
		if got, id := InClass(tc.of, tc.label, tc.value); got != tc.of.Whole() || id != nil {
			t.Errorf("%s: %v with identity %v", name, got, id)
		}
	}
	if got := NodeClassOf("tekton", []string{"build", "unit"}); got != "" {
		t.Errorf("a step of Tekton has class %q", got)
	}
}

// TestClassName: names of records are readable and bounded, and differ when name or class does.
func TestClassName(t *testing.T) {
	names := map[string]bool{}
	for _, of := range [][2]string{
		{"log", "m5.large"}, {"log", "m5-large"}, {"log-m5", "large"}, {"log", "M5.large"}, {strings.Repeat("l", 253), "a"},
	} {
		name := ClassName(memory.WorkloadRef{
			APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "kube-system", Name: of[0], NodeClass: of[1],
		})
		if names[name] || len(name) > 140 || !strings.HasPrefix(name, "nodeclass-l") {
			t.Errorf("%q is called %q, after %v", of, name, names)
		}
		names[name] = true
	}
}
