// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
)

// Answer is what Prometheus said of sizing.disruption.rollbackQuery, as of an alerting rule: no series means that all
// is well.
type Answer struct {
	// At is when it was asked for the newest answer that there is; zero: there is none.
	At time.Time
	// Series is how many series that answer has.
	Series int
	// Problem says why there is no newer answer; empty: nothing is wrong.
	Problem string
}

// answerHolds is how long an answer says something about now: Prometheus itself evaluates rules once a minute by
// default. A workload that waits or is watched is looked at twice as often (recheckAfter).
const answerHolds = time.Minute

func (a *Answer) holds(now time.Time) bool { return !a.At.IsZero() && now.Sub(a.At) <= answerHolds }

// against says why no limit may be lowered; empty: the query has no series now.
func (a *Answer) against(now time.Time) string {
	switch {
	case a.holds(now) && a.Series > 0:
		return fmt.Sprintf("rollbackQuery has %d series in its answer of %s", a.Series, format.Time(a.At))
	case a.holds(now):
		return ""
	case a.Problem != "":
		return "rollbackQuery has no answer: " + a.Problem
	}
	return "rollbackQuery has no answer yet"
}

// clearSince: the query was answered after t, and had no series.
func (a *Answer) clearSince(t, now time.Time) bool { return a.against(now) == "" && a.At.After(t) }

// waitsForQuery refuses to lower a limit while the owner's query speaks against it, or nobody knows whether it does.
func (d *decider) waitsForQuery(lowering bool) (reason, message string, refused bool) {
	if d.Answer == nil || !lowering {
		return "", "", false
	}
	if why := d.Answer.against(d.Now); why != "" {
		return v1alpha1.ReasonWaitingForQuery, "no limit is lowered while sizing.disruption." + why, true
	}
	return "", "", false
}

// querySpeaksAgainst looks for a series in the answer to the owner's query, asked for after a limit was lowered.
func (o *observation) querySpeaksAgainst() (Pod, string) {
	if o.Answer == nil || !o.Answer.holds(o.Now) || o.Answer.Series == 0 {
		return Pod{}, ""
	}
	for _, st := range o.state.Rollout.Steps {
		pod := o.pods[st.UID]
		if pod != nil && !st.Confirmed.IsZero() && o.Answer.At.After(st.Confirmed) && lowersAny(st.From, st.To) {
			return *pod, fmt.Sprintf("%s, and had none when the limit of pod %s was lowered", o.Answer.against(o.Now), pod.Name)
		}
	}
	return Pod{}, ""
}
