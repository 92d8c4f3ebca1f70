// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// ErrNotLoaded means that the workload's checkpoint is not read yet, as just after a change of leader, or that the
// result of the last write is unknown. The workload is queued; retry after its reconcile.
var ErrNotLoaded = errors.New("the workload's checkpoint is not read yet")

// LoanFacts is what the workload reconciler knows for the decision about a loan.
type LoanFacts struct {
	Owner    memory.Workload
	Loans    []rescue.Loan // of the workload: current, and of the last hour
	Program  string        // of the container; empty: unknown
	Demand   memory.Bytes  // of the container, which the kubelet reported last; 0: unknown
	DemandAt time.Time     // when the kubelet reported it
	Bounded  bool          // the cluster has a change budget
	Budget   memory.Bytes  // what remains of the change budget; 0 until all checkpoints were read
	OnNode   memory.Bytes  // memory on loan on the node, including loans that are being written
	LastHour int           // number of loans on the node within the last hour, including those being written
}

// Lend calls decide about a loan to one container. If decide returns a loan, Lend writes it into the workload's
// checkpoint and then resizes the pod. decide may be called more than once and must have no side effects. The
// checkpoint's optimistic lock, and the resize's test of the previous size, ensure that only one of two leaders lends.
// If a loan was written but not sent, decide should return it again: Lend then sends it without writing it again.
func (r *Reconciler) Lend(
	ctx context.Context, ref memory.WorkloadRef, pod *corev1.Pod, container string,
	decide func(LoanFacts) (loan *rescue.Loan, why string),
) error {
	loan, owner, err := r.writeLoan(ctx, ref, pod, container, decide)
	if err != nil || loan == nil {
		return err
	}
	a := rollout.Action{Pod: pod.Name, UID: pod.UID, Sizes: map[string]memory.Size{container: loan.To}}
	sent := r.Executor.Resize(ctx, pod, a.Sizes)
	switch o, uncertain := workload.OutcomeOf(a, sent, r.lacksRight(ctx, pod, a, sent)); {
	case sent == nil:
		r.Metrics.countChange(ref, actionName(a))
	case errors.Is(sent, ErrPodChanged): // perhaps by another leader with the same loan; the next steps show it
		return sent
	case o.Kind != rollout.OutcomeUnknown:
		return errors.Join(&LoanRefusedError{cmp.Or(o.Why, sent.Error())}, r.removeLoan(ctx, owner, loan))
	default:
		return fmt.Errorf("resizing pod %s/%s: %w", pod.Namespace, pod.Name, uncertain)
	}
	r.PodSource.enqueue(ref, priorityRefresh)
	return nil
}

// LoanRefusedError is the API server's refusal of a loan.
type LoanRefusedError struct{ Why string }

func (e *LoanRefusedError) Error() string { return "the API server refused the loan: " + e.Why }

// writeLoan calls decide, and stores the loan that it returns in the checkpoint; nil: no loan.
func (r *Reconciler) writeLoan(
	ctx context.Context, ref memory.WorkloadRef, pod *corev1.Pod, container string,
	decide func(LoanFacts) (*rescue.Loan, string),
) (loan *rescue.Loan, owner memory.Workload, err error) {
	e, known := r.states.get(ref)
	if !known {
		return nil, owner, r.notLoaded(ref)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspect {
		return nil, owner, r.notLoaded(ref)
	}
	owner = memory.Workload{Ref: ref, UID: e.owner}
	of := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
	in := LoanFacts{Owner: owner, Loans: e.state.Rollout().Loans, Program: e.state.ProgramOf(of)}
	in.Demand, in.DemandAt = e.state.DemandOf(of)
	var next *workload.State
	try := func(a *rollout.Allowance) []rollout.Spent {
		if in.Bounded = a != nil && a.Budget.Bytes > 0; in.Bounded && !a.Unknown {
			in.Budget = a.Left(e.state.Rollout().Spent, r.Clock.Now())
		}
		var why string
		loan, why = decide(in)
		next = e.state.Clone()
		if loan != nil && !isStored(in.Loans, loan) {
			next.Rollout().AddLoan(*loan, why, a != nil)
		}
		return next.Rollout().Spent
	}
	known = r.Totals.lend(ref, pod.Spec.NodeName, func(onNode memory.Bytes, lastHour int) []rescue.Loan {
		in.OnNode, in.LastHour = onNode, lastHour
		r.Totals.reserve(ref, try)
		return next.Rollout().Loans
	})
	if !known {
		return nil, owner, ErrNotLoaded
	}
	if loan == nil {
		return nil, owner, nil
	}
	if err = r.save(ctx, owner, e, next, r.Clock.Now()); err != nil {
		// The loan may be stored, by this or another leader. It counts until the reconcile has read the checkpoint.
		return nil, owner, errors.Join(err, r.notLoaded(ref))
	}
	return loan, owner, nil
}

func isStored(loans []rescue.Loan, l *rescue.Loan) bool {
	return slices.ContainsFunc(loans, func(old rescue.Loan) bool {
		return old.UID == l.UID && old.Container == l.Container && old.Sequence == l.Sequence
	})
}

// notLoaded queues the workload, so that its checkpoint is loaded, and returns ErrNotLoaded.
func (r *Reconciler) notLoaded(ref memory.WorkloadRef) error {
	r.PodSource.enqueue(ref, priorityKill)
	return ErrNotLoaded
}

// removeLoan removes a loan whose resize was refused from the checkpoint.
func (r *Reconciler) removeLoan(ctx context.Context, owner memory.Workload, l *rescue.Loan) error {
	e, known := r.states.get(owner.Ref)
	if !known {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.state.Clone()
	next.Rollout().RemoveLoan(l.UID, l.Container, l.Sequence)
	r.Totals.reserve(owner.Ref, func(*rollout.Allowance) []rollout.Spent { return next.Rollout().Spent })
	if err := r.save(ctx, owner, e, next, r.Clock.Now()); err != nil {
		return fmt.Errorf("removing a loan that was not sent: %w", err)
	}
	r.Totals.setLoans(owner.Ref, next.Rollout().Loans)
	return nil
}
