// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// ChangeBudget bounds the changes of running pods of all workloads together within an hour. The zero value has no
// bound.
type ChangeBudget struct {
	// Bytes bounds the increase of limits and requests; 0: no bound.
	Bytes memory.Bytes
	// Pods bounds the pods that are evicted, or restarted for a resize; 0: no bound.
	Pods int32
}

// Limited reports whether there is a bound.
func (b ChangeBudget) Limited() bool { return b.Bytes > 0 || b.Pods > 0 }

// Spent is the use of the budget by the change of one pod.
type Spent struct {
	At time.Time `json:"at"`
	// UID is the UID of the pod; empty: the entry is a sum of several.
	UID types.UID `json:"uid,omitempty"`
	// Bytes is the increase of the pod's containers: for each, the larger of the increases of limit and request.
	Bytes memory.Bytes `json:"bytes,omitempty"`
	// Pods is 1 if the pod was evicted or one of its containers restarted, otherwise 0.
	Pods int32 `json:"pods,omitempty"`
}

const (
	// budgetPeriod is how long an entry counts, in real time.
	budgetPeriod = time.Hour
	// maxSpent bounds the entries of a workload, of 80 bytes each. The oldest entries are merged, at the later time.
	maxSpent = 64
)

// Allowance is the budget, and its use by other workloads.
type Allowance struct {
	Budget  ChangeBudget
	Others  []Spent
	Unknown bool // the use before the start of memfit has not been read yet
}

// Recent returns the entries that count now.
func Recent(spent []Spent, now time.Time) []Spent {
	return slices.DeleteFunc(slices.Clone(spent), func(s Spent) bool { return now.Sub(s.At) >= budgetPeriod })
}

// SumOf adds up entries.
func SumOf(spent []Spent) (bytes memory.Bytes, pods int32) {
	for _, s := range spent {
		bytes, pods = bytes.Plus(s.Bytes), pods+s.Pods
	}
	return bytes, pods
}

// cost returns the use of the budget by new sizes of a pod: the increase of its containers or, if that is more, of the
// pod-level size. A missing request counts as 0. A first limit is no increase.
func (p *Pod) cost(to map[string]memory.Size, evict bool) Spent {
	s := Spent{UID: p.UID}
	var whole memory.Bytes
	for name, size := range to {
		c, _ := p.container(name)
		from := currentSize(c)
		more := size.Request.Minus(from.Request)
		if from.Limit > 0 {
			more = max(more, size.Limit.Minus(from.Limit))
		}
		if name == WholePod {
			whole = more
			continue
		}
		s.Bytes = s.Bytes.Plus(more)
		evict = evict || c.RestartsOnResize && !p.isDeferred(c) // a deferred resize was counted
	}
	s.Bytes = max(s.Bytes, whole)
	if evict {
		s.Pods = 1
	}
	return s
}

// refuses returns why the budget does not allow a cost now (empty: it does), and when it will (zero: never).
func (a *Allowance) refuses(cost Spent, own []Spent, now time.Time) (why string, retryAt time.Time) {
	over := func(bytes memory.Bytes, pods int32) bool {
		return a.Budget.Bytes > 0 && cost.Bytes > 0 && bytes.Plus(cost.Bytes) > a.Budget.Bytes ||
			a.Budget.Pods > 0 && cost.Pods > 0 && pods+cost.Pods > a.Budget.Pods
	}
	if over(0, 0) {
		return fmt.Sprintf("the change takes %s, which is more than the cluster's whole change budget of %s an hour: raise "+
			"the manager's --change-budget-bytes, or resize by hand", cost.Bytes, a.Budget.Bytes), time.Time{}
	}
	spent := Recent(slices.Concat(a.Others, own), now)
	bytes, pods := SumOf(spent)
	if !over(bytes, pods) {
		return "", time.Time{}
	}
	var used []string
	if a.Budget.Bytes > 0 {
		used = append(used, fmt.Sprintf("%s of %s raised", bytes, a.Budget.Bytes))
	}
	if a.Budget.Pods > 0 {
		used = append(used, fmt.Sprintf("%d of %d pods disrupted", pods, a.Budget.Pods))
	}
	slices.SortFunc(spent, func(a, b Spent) int { return a.At.Compare(b.At) })
	for _, s := range spent {
		bytes, pods, retryAt = bytes.Minus(s.Bytes), pods-s.Pods, s.At.Add(budgetPeriod)
		if !over(bytes, pods) {
			break
		}
	}
	return fmt.Sprintf("the cluster's change budget of this hour is spent (%s, and the change takes %s): it "+
		"continues at %s", strings.Join(used, ", "), cost.describe(), format.Time(retryAt)), retryAt
}

func (s Spent) describe() string {
	switch {
	case s.Pods == 0:
		return s.Bytes.String()
	case s.Bytes == 0:
		return "1 pod"
	}
	return s.Bytes.String() + " and 1 pod"
}

// exemptFromBudget reports whether a change may exceed the budget: a raise in place without a restart, for a kill or a
// rollback. It counts against the budget, so that other changes wait.
func (d *decider) exemptFromBudget(ch *change) bool {
	urgent := false
	for name, to := range ch.sizes {
		c, _ := ch.pod.container(name)
		kind := d.kindOf(c, currentSize(c), to, ch.evict)
		if kind&restarting != 0 || c.RestartsOnResize {
			return false
		}
		urgent = urgent || kind&rollbacks != 0 ||
			currentSize(c).Limit < to.Limit && d.Desired[c.Key()].Recommendation.Urgent
	}
	return urgent
}

// Left returns the budget's remaining bytes; 0: nothing is left, or the budget has no bound.
func (a *Allowance) Left(own []Spent, now time.Time) memory.Bytes {
	bytes, _ := SumOf(Recent(slices.Concat(a.Others, own), now))
	return a.Budget.Bytes.Minus(bytes)
}

func (d *decider) spend(cost Spent) {
	if d.Allowance == nil || cost.Bytes == 0 && cost.Pods == 0 {
		return
	}
	cost.At = toSeconds(d.Now)
	d.State.Spent = compacted(append(d.State.Spent, cost))
}

// compacted merges the oldest entries until at most maxSpent are left.
func compacted(spent []Spent) []Spent {
	for len(spent) > maxSpent {
		slices.SortStableFunc(spent, func(a, b Spent) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
		a, b := spent[0], spent[1]
		spent[1] = Spent{At: b.At, Bytes: a.Bytes.Plus(b.Bytes), Pods: a.Pods + b.Pods}
		spent = spent[1:]
	}
	return spent
}

// refund removes the entries of a pod since the start of a change that was not made.
func (s *State) refund(uid types.UID, since time.Time) {
	s.Spent = slices.DeleteFunc(slices.Clone(s.Spent), func(p Spent) bool { return p.UID == uid && !p.At.Before(since) })
}
