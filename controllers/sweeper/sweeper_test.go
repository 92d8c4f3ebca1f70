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

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
