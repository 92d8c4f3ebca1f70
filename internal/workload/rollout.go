// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
)

// The manager's role has no right to resize or evict pods. Users add these rights with kustomize components:
// config/rbac/resize-pods for sizing.mode: InPlace or InPlaceOrEvict, and config/rbac/evict-pods for InPlaceOrEvict and
// drift.action: Restart.

// resizes reports whether a mode lets memfit change running pods.
func resizes(mode v1alpha1.SizingMode) bool {
	return mode == v1alpha1.SizingInPlace || mode == v1alpha1.SizingInPlaceOrEvict
}

// ChangesRunningPods reports whether the profile lets memfit change or evict running pods.
func (s *Snapshot) ChangesRunningPods() bool {
	return s.Profile != nil &&
		(resizes(s.Profile.Spec.Sizing.Mode) || s.Profile.Spec.Drift.Action == v1alpha1.DriftRestart)
}

// RollbackQuery returns the profile's rollbackQuery if memfit may lower a limit; empty: none.
func (s *Snapshot) RollbackQuery() string {
	if s.Profile == nil || s.Profile.Spec.Sizing.Disruption == nil || !s.Profile.Spec.Sizing.Mode.SizesNewPods() {
		return ""
	}
	return s.Profile.Spec.Sizing.Disruption.RollbackQuery
}

// Rollout returns the started changes of running pods, their part of the change budget, and their loans.
func (st *State) Rollout() *rollout.State { return &st.rollout }

// RolloutIn decodes the changes of running pods in a checkpoint.
func RolloutIn(c *v1alpha1.MemoryCheckpoint) (sizing rollout.State, err error) {
	if c.Status.Version > v1alpha1.CheckpointVersion {
		return sizing, ErrTooNew
	}
	err = unpacked(c, "the state of the rollout", c.Status.Sizing, &sizing)
	return sizing, err
}

// rolloutInput returns the input of [rollout.Decide], except Desired and Restart.
func rolloutInput(
	s *Snapshot, st *State, observed map[string]inject.Observed, plans *plans, now time.Time,
) rollout.Input {
	in := rollout.Input{
		Now: now, Policy: rolloutPolicy(s, countLive(s)), State: st.rollout, Namespace: s.Owner.Ref.Namespace,
		Allowance: s.Allowance, QueryResult: s.QueryResult, Desired: map[rollout.Key]rollout.Desired{},
		Succeeded: uids(s.Pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }),
		Elsewhere: s.ungoverned(), Paused: s.paused, Conflict: s.Facts.Conflict, Waiting: st.waiting(s, now),
		Unmeasured: st.unreadUsage(s, now),
	}
	if mode := s.Profile.Spec.Sizing.Mode; !mode.SizesNewPods() {
		// memfit needs Pods only to restart them, to end loans, and to finish or roll back started changes
		r := &st.rollout
		if s.Profile.Spec.Drift.Action != v1alpha1.DriftRestart &&
			len(r.Loans)+len(r.Steps)+len(r.Lowerings)+len(r.Reverts) == 0 {
			return in
		}
	}
	for _, pod := range s.Governed {
		if pod.Spec.NodeName == "" {
			continue // unscheduled
		}
		plan := plans.of(s, pod, observed)
		in.Pods = append(in.Pods, st.runningPod(s, pod, &plan, now))
	}
	return in
}

// waiting returns the pods that no node has memory for because memfit raised their requests, oldest first.
func (st *State) waiting(s *Snapshot, now time.Time) (all []rollout.Waiting) {
	for _, pod := range slices.Backward(s.Governed) {
		if !noNodeHasMemory(pod, now) {
			continue
		}
		to := st.raisedRequests(pod)
		if len(to) == 0 {
			continue
		}
		w := rollout.Waiting{
			Name: pod.Name, UID: pod.UID, Since: pod.CreationTimestamp.UTC(), From: map[string]memory.Size{}, To: to,
			Completes: s.isRun(pod), DoNotDisrupt: constraints.DoNotDisrupt(pod.Annotations),
			NotResizable: pod.Spec.Resources != nil,
		}
		message, _ := unscheduled(pod)
		w.Scheduler = quote.Message(message)
		for c := range constraints.Containers(&pod.Spec) {
			if size, raised := to[c.Name]; raised {
				w.From[c.Name], w.NotResizable = constraints.SizeOf(&c.Resources), w.NotResizable || size.Request == 0
			}
		}
		all = append(all, w)
	}
	return all
}

func rolloutPolicy(s *Snapshot, replicas int) rollout.Policy {
	sizing, d := s.Profile.Spec.Sizing, s.Profile.Disruption()
	p := rollout.Policy{
		Evict: sizing.Mode == v1alpha1.SizingInPlaceOrEvict && !s.NoWebhook, KeepRunningPods: !resizes(sizing.Mode),
		OnlyRecommend: !sizing.Mode.SizesNewPods(), NoWebhook: s.NoWebhook,
		SingleReplicaMayRestart: d.SingleReplica == "Allowed", MaxUnavailable: profile.MaxUnavailable(d, replicas),
		Watch: d.Watch.Duration, Cooldown: d.Cooldown.Duration, RestartsPerDay: int(*s.Profile.Drift().MaxPerDay),
		IncreasesInWindows: d.Increases == v1alpha1.IncreasesInWindows,
	}
	p.Windows, _ = profile.Windows(d) // without invalid windows, which the profile's condition reports
	kind := kindOf(s.Owner.Ref)
	if p.OnEachNode = kind.PerNode; !kind.Recreates {
		p.NoEvict = "no controller recreates this pod"
	}
	return p
}

// runningPod converts a pod and its status. plan is the pod's current plan.
func (st *State) runningPod(s *Snapshot, pod *corev1.Pod, plan *inject.Plan, now time.Time) rollout.Pod {
	p := rollout.Pod{
		Name: pod.Name, UID: pod.UID, Created: pod.CreationTimestamp.UTC(), Terminating: pod.DeletionTimestamp != nil,
		Completes: s.isRun(pod), DoNotDisrupt: constraints.DoNotDisrupt(pod.Annotations),
		QoS: string(pod.Status.QOSClass), NodeSize: s.Facts.NodeSize[pod.Spec.NodeName], Resize: resizeOf(pod),
		Inadmissible: func(sizes map[string]memory.Size) string { return s.Facts.Refusal(pod, sizes) },
	}
	p.Ready, p.ReadyAt = readySince(pod)
	if writer, at := ResizedBy(pod); writer != "" {
		p.Writer, p.WrittenAt = quote.Name(writer), at
	}
	managed := Managed(s.Profile, pod)
	if p.Whole = runningWhole(s, pod, managed); p.Whole == nil && st.Refused.Size > 0 {
		p.WebhookSizes = func(sizes map[string]memory.Size) (map[string]memory.Size, string) {
			return st.replacementSizes(s, pod, managed, sizes, now)
		}
	}
	for _, c := range managed {
		spec, status := constraints.Find(pod, c.Name)
		running := rollout.Container{
			Name: c.Name, Spec: constraints.SizeOf(&spec.Resources), Actual: c.current,
			RestartsOnResize: oom.RestartsOnResize(spec), PodLimit: c.podLimit, PodRequest: c.podRequest,
		}
		running.Shared = running.Spec.Limit == 0 && p.Whole != nil && p.Whole.Spec.Limit > 0
		program := st.programIn(pod, c.Name)
		running.Program, running.ImageChanged = program.ID, program.Changed
		if e := st.evidenceOf(c.Name, program.ID); e != nil { // nil: memfit does not manage the program
			running.Owner = program.Owner
			if e.ownerSizeNew(now) {
				running.OwnerUntil = e.Since.Add(ownersDay.Duration())
			}
			running.Outdated = running.Owner != e.Owner
			if p.Created.After(e.HighestAt) && !running.Outdated {
				running.PreviousMax = e.HighestLimit
			}
			if p.Writer == "" && inject.WasResized(pod) {
				owner := cmp.Or(running.Owner.Limit, program.Created)
				running.RestoreLimit = min(cmp.Or(program.Created, owner), owner)
			}
			if running.Owner.Limit == 0 && !running.Shared && st.knowsOwner(pod, c.Name) {
				running.Owner.Limit = rollout.NoLimit
			}
		}
		ref := refOf(pod, c.Name)
		if status != nil {
			setLifecycle(&running, pod, spec, status, now)
		}
		if limit, asked, known := st.ledger.EffectiveLimit(ref); known && asked > 0 && !running.Shared {
			running.Effective = limit
		}
		running.RevertibleUntil = st.ledger.RevertibleUntil(ref)
		if in := st.instance(&ref); in != nil {
			running.Demand, running.Usage = in.recent.now(), memory.Bytes(in.recent.usage)*memory.KiB
			running.Measured, running.WorkingSetOnly = in.recent.lastAt(), in.recent.workingSetOnly
		}
		frozen := plan.Container(c.Name).StartHeapCap()
		running.FrozenHeap, running.Overhead, running.Literal = frozen.Cap, frozen.Overhead, frozen.Literal
		if st.limitedByCap(ref, frozen, running.Demand) {
			running.CapFor = frozen.For
		}
		p.Containers = append(p.Containers, running)
	}
	return p
}

// replacementSizes returns the sizes that the webhook would give to a replacement of pod: the desired sizes, reduced if
// no node took their request. why explains a reduction.
func (st *State) replacementSizes(
	s *Snapshot, pod *corev1.Pod, managed []managedContainer, sizes map[string]memory.Size, now time.Time,
) (reduced map[string]memory.Size, why string) {
	var asks []constraints.DesiredSize
	for i := range managed {
		c := &managed[i]
		want, asked := sizes[c.Name]
		if !asked || !st.knowsOwner(pod, c.Name) {
			continue
		}
		if c.current.Limit > 0 && want.Limit >= c.current.Limit { // not a canary: at least the size of running pods
			inputs := st.creationOf(s, &st.rollout, c.Name, want, now)
			want = inputs.size()
		}
		asks = append(asks, constraints.DesiredSize{
			Container: c.Name, Base: st.programIn(pod, c.Name).Owner, Want: want,
			Equal: st.staysGuaranteed(c) || c.policy.SizePolicy().RequestEqualsLimit,
		})
	}
	facts := constraints.Facts{Refused: st.Refused.Size}
	fitted, _ := facts.Fit(pod, constraints.Whole{}, asks)
	reduced = maps.Clone(sizes)
	for i := range fitted {
		if len(fitted[i].Why) > 0 {
			reduced[asks[i].Container], why = fitted[i].Size, cmp.Or(why, strings.Join(fitted[i].Why, "; "))
		}
	}
	return reduced, why
}

// limitedByCap reports whether a process needs a higher heap cap: it last ended with a full heap or, if the cap is
// soft, uses more than the cap.
func (st *State) limitedByCap(c memory.ContainerRef, f inject.StartHeapCap, demand memory.Bytes) bool {
	if !f.Hard {
		return demand > f.Cap.Plus(f.Overhead).Percent(105)
	}
	last, killed := st.ledger.Last(c)
	return killed && last.Kind == memory.OOMHeapAbort
}

// briefLife is how long a container must run for a resize to take effect: the kubelet needs up to two seconds, and the
// times in a status are rounded to whole seconds.
const briefLife = 3 * time.Second

// setLifecycle sets the restarts, times and ends of a container from its status.
func setLifecycle(
	c *rollout.Container, pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus, now time.Time,
) {
	c.Restarts, c.Ready = status.RestartCount, status.Ready
	last := status.LastTerminationState.Terminated
	if t := status.State.Terminated; t != nil {
		last = t
		c.Done = !constraints.Sidecar(spec) && t.ExitCode == 0 && isInit(pod, spec.Name)
	}
	c.EndedWell = last != nil && last.ExitCode == 0
	if r := status.State.Running; r != nil {
		c.Started = r.StartedAt.UTC()
		if now.Sub(c.Started) >= briefLife {
			return
		}
	}
	c.EndedEarly = last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < briefLife
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
}

func resizeOf(pod *corev1.Pod) rollout.Resize {
	var r rollout.Resize
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case corev1.PodResizePending:
			r.Deferred, r.Infeasible = c.Reason == corev1.PodReasonDeferred, c.Reason == corev1.PodReasonInfeasible
		case corev1.PodResizeInProgress:
			r.InProgress, r.Failed = true, c.Reason == corev1.PodReasonError
		default:
			continue
		}
		if c.Message != "" {
			r.Message = quote.Message(c.Message)
		}
	}
	return r
}

// FieldManager is memfit's name in the managed fields of pods.
const FieldManager = "memfit"

// ResizedBy returns the manager of the last resize of a pod and its time; empty: no resize, or memfit's own. It reads
// managed fields, which the cache keeps for resizes (see informers.SlimPod).
func ResizedBy(pod *corev1.Pod) (manager string, at time.Time) {
	var last metav1.ManagedFieldsEntry
	for _, e := range pod.ManagedFields {
		if e.Subresource == "resize" && (last.Time == nil || e.Time != nil && last.Time.Before(e.Time)) {
			last = e
		}
	}
	if last.Manager == FieldManager {
		return "", time.Time{}
	}
	if last.Time != nil {
		at = last.Time.UTC()
	}
	return last.Manager, at
}

func resizedByOther(pod *corev1.Pod) bool {
	writer, _ := ResizedBy(pod)
	return writer != ""
}

// lastDay returns the highest demand of today and yesterday, which include the last 24 hours; 0: unknown.
func lastDay(h *history.Container) memory.Bytes {
	if h == nil {
		return 0
	}
	var peak memory.Bytes
	days := h.Days()
	for _, d := range days[max(len(days)-2, 0):] {
		peak = max(peak, d.Peak)
	}
	return peak
}

// BlockedByBudget is the reason for not evicting or restarting a pod.
const BlockedByBudget = "a PodDisruptionBudget does not allow it now"

// OutcomeOf converts the API server's response to an action; it returns err if the outcome is uncertain. noRight is
// true if RBAC does not permit the action. The response does not show this, because admission also responds with
// Forbidden.
func OutcomeOf(a rollout.Action, err error, noRight bool) (rollout.Outcome, error) {
	switch {
	case err == nil:
		return rollout.Outcome{}, nil
	case !a.Evict && apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The path is missing, not the pod.
		return rollout.Outcome{Kind: rollout.OutcomeRefused, All: true,
			Why: "this API server does not serve pods/resize (on by default since Kubernetes 1.33): check the feature gate " +
				"InPlacePodVerticalScaling"}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return rollout.Outcome{Kind: rollout.OutcomeGone}, nil
	case a.Evict && apierrors.IsTooManyRequests(err):
		return rollout.Outcome{Kind: rollout.OutcomeBudget, Why: BlockedByBudget}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsBadRequest(err):
		why := "the API server refused the change: " + quote.Line(err.Error())
		o := rollout.Outcome{Kind: rollout.OutcomeRefused, Why: why}
		switch {
		case !noRight || !apierrors.IsForbidden(err):
			return o, nil
		case a.Evict:
			o.Why += " (the kustomize component config/rbac/evict-pods grants the right, or rights.evictPods of the chart)"
		default:
			o.Why += " (the kustomize component config/rbac/resize-pods grants the right, or rights.resizePods of the chart)"
		}
		o.Kind = rollout.OutcomeNoRight
		return o, nil
	}
	return rollout.Outcome{}, err
}

// MakesUnavailable reports whether an action makes an available pod unavailable.
func MakesUnavailable(pod *corev1.Pod, a rollout.Action) bool {
	restarts := false
	for c := range constraints.Containers(&pod.Spec) {
		_, asked := a.Sizes[c.Name]
		restarts = restarts || asked && oom.RestartsOnResize(c)
	}
	return available(pod) && (a.Evict || !a.Undo && restarts)
}

// TooFewAvailable returns why no further pod may become unavailable; empty: one may. wanted is the desired number of
// pods; 0: unknown, so that the number of pods that have not ended counts.
func (st *State) TooFewAvailable(s *Snapshot, a rollout.Action, wanted int) string {
	var pods []rollout.Pod
	for _, pod := range s.Pods {
		if ended(pod) {
			continue
		}
		p := rollout.Pod{UID: pod.UID, Ready: ready(pod), Terminating: pod.DeletionTimestamp != nil}
		for c := range constraints.Containers(&pod.Spec) {
			p.Containers = append(p.Containers, rollout.Container{Name: c.Name, RestartsOnResize: oom.RestartsOnResize(c)})
		}
		pods = append(pods, p)
	}
	wanted = cmp.Or(wanted, len(pods))
	return st.rollout.Availability(pods, wanted, a.UID).TooFew(rolloutPolicy(s, wanted).MaxUnavailable)
}

// countLive returns the number of pods that have not ended and are not terminating.
func countLive(s *Snapshot) int {
	return len(uids(s.Pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !ended(pod) }))
}

func ready(pod *corev1.Pod) bool {
	is, _ := readySince(pod)
	return is
}

func readySince(pod *corev1.Pod) (ready bool, since time.Time) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true, c.LastTransitionTime.UTC()
		}
	}
	return false, time.Time{}
}

func available(pod *corev1.Pod) bool {
	return ready(pod) && pod.DeletionTimestamp == nil && !ended(pod)
}

// WithoutResizeHint returns what users can do to give pods a higher limit without memfit's right to resize; empty: the
// limit is not higher, or new pods do not get it.
func WithoutResizeHint(s *Snapshot, pod *corev1.Pod, a rollout.Action) string {
	for name, to := range a.Sizes {
		spec, _ := constraints.Find(pod, name)
		if spec != nil && !s.NoWebhook && to.Limit > constraints.SizeOf(&spec.Resources).Limit {
			return "; otherwise " + restartHint(s)
		}
	}
	return ""
}
