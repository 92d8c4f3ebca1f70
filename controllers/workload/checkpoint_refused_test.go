// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/workload"
)

// regarding records what events are about.
type regarding struct {
	reasons []string
	objects []corev1.ObjectReference
}

func (r *regarding) Record(_ memory.Workload, e workload.Event) {
	r.reasons, r.objects = append(r.reasons, e.Reason), append(r.objects, *e.Regarding)
}

// TestACheckpointThatCannotBeReadIsReported: after a rollback of memfit, workloads were not managed and only a log line
// reported it.
func TestACheckpointThatCannotBeReadIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MemoryCheckpointStatus)
		reason string
	}{
		"of a newer version": {
			func(s *v1alpha1.MemoryCheckpointStatus) { s.Version = v1alpha1.CheckpointVersion + 1 },
			v1alpha1.ReasonCheckpointTooNew,
		},
		"of a newer version that has another ledger": {
			func(s *v1alpha1.MemoryCheckpointStatus) {
				s.Version, s.Ledger = v1alpha1.CheckpointVersion+1, []byte{99, 1}
			},
			v1alpha1.ReasonCheckpointTooNew,
		},
		"damaged": {
			func(s *v1alpha1.MemoryCheckpointStatus) { s.Ledger = []byte("{") }, v1alpha1.ReasonCheckpointUnreadable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeletion(t, v1alpha1.ProfileAnnotation, "web")
			key := client.ObjectKey{Namespace: "shop", Name: policy.RecordName(d.web())}
			var stored v1alpha1.MemoryCheckpoint
			if err := d.store.Get(t.Context(), key, &stored); err != nil {
				t.Fatal(err)
			}
			tc.change(&stored.Status)
			if err := d.store.Status().Update(t.Context(), &stored); err != nil {
				t.Fatal(err)
			}
			before := stored.ResourceVersion
			d.start()
			events := &regarding{}
			d.reconciler.Recorder = events
			d.reconciler.backoffs = backoffs{}
			result, err := d.reconciler.Reconcile(t.Context(), d.web())
			if err != nil || result.RequeueAfter == 0 {
				t.Fatalf("got %+v, %v, want a rest: an error is tried again at once", result, err)
			}
			var rec v1alpha1.MemoryRecommendation
			if err := d.store.Get(t.Context(), key, &rec); err != nil {
				t.Fatal(err)
			}
			for kind, want := range map[string]metav1.ConditionStatus{
				v1alpha1.ConditionStalled: metav1.ConditionTrue, v1alpha1.ConditionReady: metav1.ConditionFalse,
			} {
				c := meta.FindStatusCondition(rec.Status.Conditions, kind)
				if c == nil || c.Status != want || c.Reason != tc.reason || !strings.Contains(c.Message, key.String()) {
					t.Errorf("condition %s is %+v, want %s with reason %s", kind, c, want, tc.reason)
				}
				if c != nil && len(c.Message) > 400 {
					t.Errorf("the message has %d characters, want at most 400: %s", len(c.Message), c.Message)
				}
			}
			if len(events.reasons) != 1 || events.reasons[0] != tc.reason || events.objects[0].UID != "deployment" {
				t.Errorf("events %v about %v, want one about the Deployment with its UID", events.reasons, events.objects)
			}
			if err := d.store.Get(t.Context(), key, &stored); err != nil || stored.ResourceVersion != before {
				t.Errorf("the checkpoint was written (%v)", err)
			}
		})
	}
}
