// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/rollout"
)

// Outcome is what became of an action.
type Outcome struct {
	Kind outcomeKind
	// why the API server refused it.
	Why string
}

type outcomeKind int

const (
	// outcomeUnknown means that it was done, or nobody knows; the next step sees what there is.
	outcomeUnknown outcomeKind = iota
	// OutcomeGone means that the pod does not exist any more, or another has its name.
	OutcomeGone
	// OutcomeBudget means that a PodDisruptionBudget does not allow it now.
	OutcomeBudget
	// OutcomeRefused means that the API server does not allow it.
	OutcomeRefused
	// OutcomeNoRight means that memfit has no right to do it, as its installation stands.
	OutcomeNoRight
	// outcomeNotAttempted means that it was not sent.
	outcomeNotAttempted
)

// Note takes in what became of an action, so that what was refused is not asked for again at once. Whatever failed
// otherwise is tried again by the next step, because the state says that it is to be done; but for an eviction for
// memory that climbs: of that nobody knows whether it happened, and it counts as done.
func (st *State) Note(a rollout.Action, o Outcome, now time.Time) {
	if a.Restart && o.Kind != outcomeUnknown {
		st.restarts.Undo(a.UID)
	}
	switch o.Kind {
	case OutcomeGone:
		st.rollout.Gone(a.UID)
	case OutcomeBudget:
		st.refuse(a, v1alpha1.ReasonBudget, budgetRefusal, now.Add(afterBudget), now)
	case OutcomeRefused:
		st.refuse(a, v1alpha1.ReasonRefused, o.Why, now.Add(afterForbidden), now)
	case OutcomeNoRight:
		if a.Restart {
			st.refuse(a, v1alpha1.ReasonRefused, o.Why, now.Add(afterForbidden), now)
		} else {
			st.rollout.NoRight(a, o.Why, now)
		}
	case outcomeNotAttempted:
		if a.Restart {
			st.rollout.Gone(a.UID)
		}
	case outcomeUnknown:
	}
}

const budgetRefusal = "a PodDisruptionBudget does not allow it now"

func (st *State) refuse(a rollout.Action, reason, why string, until, now time.Time) {
	if !a.Restart {
		st.rollout.Refused(a, reason, why, now)
		return
	}
	st.rollout.Gone(a.UID)
	st.restartRefused = refusal{until, why}
}

// NotDone notes that none of the actions was sent: what people read could not be written, and nothing is done behind
// their backs.
func (st *State) NotDone(actions []rollout.Action) {
	for _, a := range actions {
		st.Note(a, Outcome{Kind: outcomeNotAttempted}, time.Time{})
	}
}
