// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/internal/rollout"
)

// TestWhatTheAPIServersAnswerMeans: a right may be granted at any moment, and what admission forbids no right allows.
// Which of them it was, no text decides.
func TestWhatTheAPIServersAnswerMeans(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", errors.New(why))
	}
	const who = `User "system:serviceaccount:memfit-system:memfit-controller-manager" `
	for name, test := range map[string]struct {
		action rollout.Action
		err    error
		lacks  bool
		want   rollout.Outcome // Why: a part of it
		not    string
	}{
		"no right to resize": {
			err:   forbidden(who + `cannot patch resource "pods/resize" in API group "" in the namespace "shop"`),
			lacks: true,
			want: rollout.Outcome{
				Kind: rollout.OutcomeNoRight, Why: "config/rbac/resize-pods grants the right, or rights.resizePods of the chart",
			},
		},
		"no right to evict": {
			action: rollout.Action{Evict: true},
			err:    forbidden("another authorizer's words"),
			lacks:  true,
			want: rollout.Outcome{
				Kind: rollout.OutcomeNoRight, Why: "config/rbac/evict-pods grants the right, or rights.evictPods of the chart",
			},
		},
		"no right to restart": {
			action: rollout.Action{Evict: true, Restart: true}, err: forbidden(""), lacks: true,
			want: rollout.Outcome{Kind: rollout.OutcomeNoRight, Why: "config/rbac/evict-pods grants the right"},
		},
		"a policy that words it as an authorizer does": {
			err:  forbidden(who + `cannot patch resource "pods/resize" at night`),
			want: rollout.Outcome{Kind: rollout.OutcomeRefused, Why: "at night"}, not: "grants it",
		},
		"a restart that a policy forbids": {
			action: rollout.Action{Evict: true, Restart: true}, err: forbidden("not at night"),
			want: rollout.Outcome{Kind: rollout.OutcomeRefused, Why: "at night"}, not: "grants it",
		},
		"an API server that cannot resize pods": {
			err: &apierrors.StatusError{ErrStatus: metav1.Status{
				Reason:  metav1.StatusReasonNotFound,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}},
			}},
			want: rollout.Outcome{Kind: rollout.OutcomeRefused, Why: "does not serve pods/resize", All: true},
		},
		"a quota": {
			err: forbidden(
				"exceeded quota: q, requested: limits.memory=512Mi, used: limits.memory=1Gi, limited: limits.memory=1Gi",
			),
			want: rollout.Outcome{Kind: rollout.OutcomeRefused, Why: "exceeded quota"}, not: "grants it",
		},
	} {
		got, err := OutcomeOf(test.action, test.err, test.lacks)
		if err != nil || got.Kind != test.want.Kind || got.All != test.want.All ||
			!strings.Contains(got.Why, test.want.Why) ||
			test.not != "" && strings.Contains(got.Why, test.not) {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, test.want)
		}
	}
}
