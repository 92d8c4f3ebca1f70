// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rescue"
)

// loanTimeout is the age after which a loan that the pod's spec does not show counts as not sent, and an ineffective
// loan as failed. A resize takes a tenth of a second, and a raise after a kill waits for the loan.
const loanTimeout = time.Minute

// AddLoan stores a loan, which the caller sends next. It ends a change of the same container, and an eviction of its
// pod. budget: the loan counts against the change budget.
func (s *State) AddLoan(l rescue.Loan, why string, budget bool) {
	l.At = l.At.UTC()
	l.LastHigh, l.Read = l.At, l.At
	s.dropRestart(l.UID)
	s.replace(l.UID, map[string]memory.Size{l.Container: {}, WholePod: {}})
	s.Steps = slices.DeleteFunc(s.Steps, func(st Step) bool { return st.UID == l.UID && st.evicts() })
	s.abandon()
	s.Loans = append(slices.Clone(s.Loans), l)
	from, to := map[string]memory.Size{l.Container: l.From}, map[string]memory.Size{l.Container: l.To}
	s.record(withSizes(Change{Kind: Loaned, At: l.At, Pod: l.Pod, Why: why}, from, to), l.At)
	if budget {
		s.Spent = compacted(append(slices.Clone(s.Spent), Spent{At: toSeconds(l.At), UID: l.UID, Bytes: l.Extra()}))
	}
}

// RemoveLoan removes a loan that the API server refused, and its use of the budget.
func (s *State) RemoveLoan(uid types.UID, container string, sequence int64) {
	s.Loans = slices.DeleteFunc(slices.Clone(s.Loans), func(l rescue.Loan) bool {
		undone := l.Of(uid, container) && l.Sequence == sequence
		if undone {
			s.refund(uid, toSeconds(l.At))
			s.forgetLoanChange(&l)
		}
		return undone
	})
}

func (s *State) forgetLoanChange(l *rescue.Loan) {
	s.Changes = slices.DeleteFunc(slices.Clone(s.Changes), func(c Change) bool {
		return c.Kind == Loaned && c.Pod == l.Pod && c.At.Equal(toSeconds(l.At))
	})
}

// LoanSizes returns the size of a container before its loans, and with them; false: no loans.
func (s *State) LoanSizes(uid types.UID, container string) (from, to memory.Size, on bool) {
	for l := range s.current(uid, container) {
		if !on {
			from = l.From
		}
		to, on = l.To.Max(to), true
	}
	return from, to, on
}

// current yields the loans of a container that are not returned.
func (s *State) current(uid types.UID, container string) iter.Seq[*rescue.Loan] {
	return func(yield func(*rescue.Loan) bool) {
		for i := range s.Loans {
			if l := &s.Loans[i]; l.Of(uid, container) && l.Returned.IsZero() && !yield(l) {
				return
			}
		}
	}
}

// hasLoan reports whether a container of the pod has a loan that is not returned.
func (s *State) hasLoan(pod types.UID) bool {
	return slices.ContainsFunc(s.Loans, func(l rescue.Loan) bool { return l.UID == pod && l.Returned.IsZero() })
}

// LimitWithoutLoan returns the limit of a killed container without its loans; 0: it was not killed at the limit with
// them.
func (s *State) LimitWithoutLoan(k *memory.OOMKill) memory.Bytes {
	var own, lent memory.Bytes
	for l := range s.current(k.Container.UID, k.Container.Container) {
		own, lent = max(cmp.Or(own, l.From.Limit), l.Enough), max(lent, l.To.Limit)
	}
	if k.Limit != lent || own >= lent {
		return 0
	}
	return own
}

// endedLoan returns the size of a container before its loans; false: not all of them have ended, or there are none.
func (s *State) endedLoan(uid types.UID, container string) (from memory.Size, over bool) {
	from, _, over = s.LoanSizes(uid, container)
	for l := range s.current(uid, container) {
		over = over && !l.Ended.IsZero()
	}
	return from, over
}

// returnedAt returns when the last loan of a container was returned, within the last hour; zero: none.
func (s *State) returnedAt(uid types.UID, container string) (at time.Time) {
	for i := range s.Loans {
		if l := &s.Loans[i]; l.Of(uid, container) {
			at = later(at, l.Returned)
		}
	}
	return at
}

// preventedKills returns the kills that loans prevented: demand reached the limit that the container had before.
func (s *State) preventedKills() []memory.OOMKill {
	var all []memory.OOMKill
	for i := range s.Loans {
		if l := &s.Loans[i]; l.Peak >= l.From.Limit && l.From.Limit > 0 {
			all = append(all, memory.OOMKill{
				Container: memory.ContainerRef{Pod: l.Pod, UID: l.UID, Container: l.Container}, Program: l.Program,
				Kind: notKilled, Time: l.At, Seen: l.At, Limit: l.From.Limit,
			})
		}
	}
	return all
}

// notKilled marks a kill that a loan prevented, and which disproves a lower limit like other kills.
const notKilled memory.OOMKind = "Prevented"

// followLoans updates the loans, and drops those that were returned longer than rescue.Hold ago.
func (o *observation) followLoans() {
	kept := make([]rescue.Loan, 0, len(o.state.Loans))
	for _, l := range o.state.Loans {
		keep := o.Now.Sub(l.Returned) < rescue.Hold || o.Now.Sub(l.At) < rescue.Hold
		if l.Returned.IsZero() {
			keep = o.followLoan(&l)
		}
		if keep {
			kept = append(kept, l)
		}
	}
	o.state.Loans = kept
}

// followLoan updates a loan, and reports whether to keep it in the state.
func (o *observation) followLoan(l *rescue.Loan) bool {
	pod := o.pods[l.UID]
	c, found := Container{}, false
	if pod != nil {
		c, found = pod.container(l.Container)
	}
	base, top, _ := o.state.LoanSizes(l.UID, l.Container)
	l.Seen = l.Seen || found && c.Spec.Limit >= l.To.Limit
	switch {
	case pod == nil && !o.Elsewhere[l.UID], pod != nil && pod.Terminating:
		l.Ended = cmp.Or(l.Ended, toSeconds(o.Now))
		l.Returned = toSeconds(o.Now)
		return true
	case !found:
		return true // the profile no longer sizes the container, and the pod still has the loan
	case !l.Seen && o.Now.Sub(l.At) < loanTimeout:
		return true
	case !l.Seen: // the loan was not sent: the leader ended, or the pod's size had changed
		o.state.refund(l.UID, toSeconds(l.At))
		o.state.forgetLoanChange(l)
		return false
	case c.Spec.Limit < top.Limit && o.state.Changing(l.UID):
		if !l.Ended.IsZero() { // the lower limit is not effective yet, and may be undone
			o.watchLoan(l, &c, base)
		}
		return true
	case c.Spec.Limit <= l.From.Limit && l.Ended.IsZero():
		l.Ended, l.Returned = toSeconds(o.Now), toSeconds(o.Now)
		return true
	}
	if o.endFailedLoan(l, pod, &c) {
		return true
	}
	lowered := c.Spec.Limit <= base.Limit || l.Enough > base.Limit && c.Spec.Limit < top.Limit
	switch over := l.Superseded || !l.Ended.IsZero() && lowered; {
	case over && l.Failed:
		l.Returned = toSeconds(o.Now) // the failure was reported
	case over:
		o.endLoan(l, l.Superseded)
	default:
		o.watchLoan(l, &c, base)
	}
	return true
}

// endFailedLoan ends a loan that the kubelet has not made effective: the loan would hide a raise after the kill.
func (o *observation) endFailedLoan(l *rescue.Loan, pod *Pod, c *Container) bool {
	waited, why, r := o.Now.Sub(l.At), "", pod.Resize
	switch {
	case !l.Ended.IsZero() || c.Actual.Limit > l.From.Limit || waited < statusDelay:
	case r.Infeasible:
		why = "the node cannot hold it: " + r.Message
	case waited < loanTimeout:
	case r.Deferred:
		why = "the node has too little free memory: " + r.Message
	case r.Failed:
		why = "the kubelet failed to resize it: " + r.Message
	case !c.Started.IsZero() && o.Now.Sub(c.Started) >= loanTimeout:
		why = "the kubelet has not actuated it"
	}
	if why == "" {
		return false
	}
	l.Failed, l.Ended = true, toSeconds(o.Now)
	o.reportLoan(l, NotResized, "is rolled back", why, l.From, l.To)
	return true
}

// watchLoan records the demand of a container with a loan, and ends the loan if demand has been low for long enough.
func (o *observation) watchLoan(l *rescue.Loan, c *Container, base memory.Size) {
	if l.Failed || c.Measured.IsZero() || c.Measured.Before(l.At) || c.WorkingSetOnly {
		return // the loan has failed, or demand is unknown
	}
	l.Peak = max(l.Peak, c.Demand)
	over := l.Settle(c.Demand, c.Measured, max(base.Limit, l.Enough), o.Now)
	switch {
	case !over:
		l.Ended = time.Time{}
	case l.Ended.IsZero():
		l.Ended = toSeconds(o.Now)
	}
}

// endSupersededLoans ends the loans for which nearly the same limit is recommended now, because all pods get it. For
// the other loans, it records the recommended limit.
func (d *decider) endSupersededLoans() {
	for i := range d.State.Loans {
		l := &d.State.Loans[i]
		pod := d.pods[l.UID]
		if pod == nil || !l.Returned.IsZero() {
			continue
		}
		c, _ := pod.container(l.Container)
		desired, known := d.Desired[c.Key()]
		if !known {
			continue
		}
		size := memory.Size{Request: l.To.Request, Limit: desired.Recommendation.Size.Limit}
		if l.Enough = 0; size.Limit > l.From.Limit {
			l.Enough = size.Limit
			l.Superseded = l.Superseded || size.Limit >= l.To.Limit || !recommend.Differs(l.To, size, desired.Policy)
		}
	}
}

func (o *observation) endLoan(l *rescue.Loan, taken bool) {
	l.Ended, l.Returned = cmp.Or(l.Ended, toSeconds(o.Now)), toSeconds(o.Now)
	back := memory.Size{Request: l.From.Request, Limit: max(l.From.Limit, l.Enough)}
	why := fmt.Sprintf("demand stayed below %s for %s", back.Limit, format.InWords(rescue.Hold))
	if taken {
		back, why = l.To, "it is recommended for all pods now"
	}
	o.reportLoan(l, Returned, "has ended", why, l.To, back)
}

func (o *observation) reportLoan(l *rescue.Loan, kind FindingKind, what, why string, from, to memory.Size) {
	c := Change{Kind: kind, At: o.Now, Pod: l.Pod, Why: why}
	if from != to {
		c = withSizes(c, map[string]memory.Size{l.Container: from}, map[string]memory.Size{l.Container: to})
	}
	o.state.record(c, o.Now)
	o.findings = append(o.findings, Finding{Kind: kind, Pod: l.Pod, UID: l.UID, Message: fmt.Sprintf(
		"The loan of %s to container %s of %s %s: %s", l.Extra(), l.Container, format.Time(l.At), what, why,
	)})
}

// withoutLoans returns the effective size of a container without its loans. decrease: Never protects only this size, so
// that loans can be returned.
func (d *decider) withoutLoans(pod *Pod, c Container) memory.Size {
	size := pod.effectiveSize(c)
	if from, _, on := d.State.LoanSizes(pod.UID, c.Name); on {
		size = memory.Size{Request: min(size.Request, from.Request), Limit: min(size.Limit, from.Limit)}
	}
	return size
}

// returnsLoan reports whether a change only returns ended loans.
func (d *decider) returnsLoan(ch *change) bool {
	_, over := d.State.endedLoan(ch.pod.UID, ch.c.Name)
	return over && lowers(currentSize(ch.c).Limit, ch.to.Limit) && !lowers(d.withoutLoans(ch.pod, ch.c).Limit, ch.to.Limit)
}

// keepLoans raises a new size to the size that the container has with its loans or, if all have ended, before them. It
// does not raise above the spec: a loan may be pending, or reduced to the owner's bounds.
func (d *decider) keepLoans(pod *Pod, c Container, to memory.Size) memory.Size {
	if from, over := d.State.endedLoan(pod.UID, c.Name); over {
		return to.Max(from)
	}
	if from, lent, on := d.State.LoanSizes(pod.UID, c.Name); on && c.Spec.Limit > from.Limit {
		return to.Max(memory.Size{Request: min(lent.Request, c.Spec.Request), Limit: min(lent.Limit, c.Spec.Limit)})
	}
	return to
}

// loanNote returns the end of a message, about the current loans; empty: there are none.
func (d *decider) loanNote() string {
	var sum memory.Bytes
	var last *rescue.Loan
	for i := range d.State.Loans {
		if l := &d.State.Loans[i]; l.Returned.IsZero() {
			sum, last = sum.Plus(l.Extra()), l
		}
	}
	if last == nil {
		return ""
	}
	return fmt.Sprintf("; %s on loan (sizing.rescue), the last to pod %s at %s", sum, last.Pod, format.Time(last.At))
}
