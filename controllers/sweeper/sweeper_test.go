// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestAFailedSweepIsRepeatedSoon: the API server is away for the first two sweeps, and again for a later one.
func TestAFailedSweepIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var sweeps []time.Duration
		api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				if list.GetObjectKind().GroupVersionKind().Kind != "MemoryRecommendationList" {
					return nil
				}
				sweeps = append(sweeps, time.Since(began))
				if n := len(sweeps); n <= 2 || n == 4 {
					return errors.New("connection refused")
				}
				return nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Sweeper{Client: api, APIReader: api, Clock: clock.RealClock{}}.Start(ctx) }()
		time.Sleep(13 * time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := []time.Duration{
			0, time.Minute, 3 * time.Minute, // twice as long after the second failure
			6*time.Hour + 3*time.Minute, 6*time.Hour + 4*time.Minute, // a success in between: a minute again
			12*time.Hour + 4*time.Minute,
		}
		if !slices.Equal(sweeps, want) {
			t.Errorf("swept after %v, want %v", sweeps, want)
		}
	})
}

// TestACheckpointIsKeptAfterItsProfileIsGone: its pods may follow another profile tomorrow, and nothing is forgotten.
func TestACheckpointIsKeptAfterItsProfileIsGone(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ago := func(days int) metav1.Time { return metav1.NewTime(now.AddDate(0, 0, -days)) }
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		created, written int
		want             bool
	}{
		"written today":      {100, 0, false},
		"not for five weeks": {100, 36, true},
		"new":                {1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.MemoryCheckpoint{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ci", Name: "tekton-build", CreationTimestamp: ago(test.created),
				Labels:        map[string]string{v1alpha1.IdentityLabel: "tekton"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "memfit", Time: new(ago(test.written))}},
			}}
			stored := c.DeepCopy()
			stored.ManagedFields = nil // the fake takes only its own
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), stored); err != nil {
				t.Fatal(err)
			}
			c.ResourceVersion = stored.ResourceVersion
			w := Sweeper{Client: api, APIReader: api, Clock: clocktesting.NewFakePassiveClock(now)}
			if got, err := w.check(t.Context(), c); err != nil || got != test.want {
				t.Errorf("deleted: %t (%v), want %t", got, err, test.want)
			}
		})
	}
}
