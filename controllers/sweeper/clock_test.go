// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestNothingExpiresByOneClock: the clock of the leader's node is five weeks ahead, and all records were deleted.
func TestNothingExpiresByOneClock(t *testing.T) {
	today := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		local, server time.Duration // since today
		unasked, want bool
	}{
		"memfit is ahead":                  {local: 36 * 24 * time.Hour},
		"the API server is ahead":          {server: 36 * 24 * time.Hour},
		"the API server was not asked yet": {local: 36 * 24 * time.Hour, server: 36 * 24 * time.Hour, unasked: true},
		"both":                             {local: 36 * 24 * time.Hour, server: 37 * 24 * time.Hour, want: true},
		"none":                             {},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", today.Add(tc.server).Format(http.TimeFormat))
			}))
			defer server.Close()
			now := &ServerClock{Local: func() time.Time { return today.Add(tc.local) }}
			if !tc.unasked {
				response, err := now.Client(server.Client()).Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
			}
			record := &v1alpha1.MemoryRecommendation{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ci", Name: "unit", Labels: map[string]string{v1alpha1.IdentityLabel: "tekton"},
				},
				Status: v1alpha1.MemoryRecommendationStatus{
					Identity: &v1alpha1.PodIdentity{LastSeen: metav1.NewTime(today)},
				},
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record).Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
				t.Fatal(err)
			}
			got, err := (Sweeper{Client: api, APIReader: api, Clock: now}).check(t.Context(), record)
			if err != nil || got != tc.want {
				t.Errorf("deleted: %t (%v), want %t", got, err, tc.want)
			}
		})
	}
}
