// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

func amount(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
}

// TestTheLargestNode stays known while nodes come, shrink and go.
func TestTheLargestNode(t *testing.T) {
	n := &nodes{}
	h := n.handler()
	node := func(name, allocatable string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: amount(allocatable)},
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"two nodes", func() { h.OnAdd(node("a", "8Gi"), true); h.OnAdd(node("b", "4Gi"), true) }, "8Gi"},
		{"the largest shrinks", func() { h.OnUpdate(node("a", "8Gi"), node("a", "2Gi")) }, "4Gi"},
		{"a larger one comes", func() { h.OnAdd(node("c", "16Gi"), false) }, "16Gi"},
		{"and goes", func() { h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: node("c", "16Gi")}) }, "4Gi"},
		{"and the last ones", func() { h.OnDelete(node("a", "2Gi")); h.OnDelete(node("b", "4Gi")) }, "0"},
	} {
		step.do()
		if all := n.all(); all.LargestNode.String() != step.want {
			t.Errorf("%s: the largest is %s of %v, want %s", step.what, all.LargestNode, all.NodeSize, step.want)
		}
	}
}

// TestANodeIsShortOfMemoryWhileItReportsIt: readers keep what they were given.
func TestANodeIsShortOfMemoryWhileItReportsIt(t *testing.T) {
	n, since := &nodes{}, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	h := n.handler()
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{
			Allocatable: amount("8Gi"),
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: status, LastTransitionTime: metav1.NewTime(since)},
			},
		}}
	}
	for _, step := range []struct {
		what string
		do   func()
		want time.Time
	}{
		{"at first", func() { h.OnAdd(node(corev1.ConditionFalse), true) }, time.Time{}},
		{"under pressure", func() { h.OnUpdate(node(corev1.ConditionFalse), node(corev1.ConditionTrue)) }, since},
		{"no longer", func() { h.OnUpdate(node(corev1.ConditionTrue), node(corev1.ConditionFalse)) }, time.Time{}},
		{"again", func() { h.OnUpdate(node(corev1.ConditionFalse), node(corev1.ConditionTrue)) }, since},
		{"gone", func() { h.OnDelete(node(corev1.ConditionTrue)) }, time.Time{}},
	} {
		before := n.all().NodePressureSince
		was := before["a"]
		step.do()
		if short := n.all().NodePressureSince; !short["a"].Equal(step.want) || !before["a"].Equal(was) {
			t.Errorf("%s: short since %s, want %s; what was read before is now %s", step.what, short["a"], step.want,
				before["a"])
		}
	}
}
