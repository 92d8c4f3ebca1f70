// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestAHandlerIsToldOfItsKindOnly: of a deletion that was missed, the relist tells with the version known last.
func TestAHandlerIsToldOfItsKindOnly(t *testing.T) {
	var told []string
	h := Handler[*corev1.Pod]{
		Seen:    func(p *corev1.Pod) { told = append(told, "seen "+p.Name) },
		Changed: func(a, b *corev1.Pod) { told = append(told, "changed "+a.Name+" "+b.Name) },
		Gone:    func(p *corev1.Pod) { told = append(told, "gone "+p.Name) },
	}
	named := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for _, on := range []toolscache.ResourceEventHandler{h, Handler[*corev1.Pod]{}} {
		on.OnAdd(named("a"), true)
		on.OnAdd(&corev1.Node{}, true)
		on.OnUpdate(named("a"), named("b"))
		on.OnUpdate(&corev1.Node{}, named("b"))
		on.OnDelete(named("b"))
		on.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop/c", Obj: named("c")})
		on.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop/d"})
	}
	if want := []string{"seen a", "changed a b", "gone b", "gone c"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
