// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/conditions"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/report"
	"github.com/memfit/memfit/internal/shape"
	"github.com/memfit/memfit/internal/workloadkind"
)

// The conditions of a recommendation, except Stalled, which the reconciler sets.
const (
	conditionReady         conditions.Kind = v1alpha1.ConditionReady
	conditionOOM           conditions.Kind = v1alpha1.ConditionOOMObserved
	conditionMemoryStalled conditions.Kind = v1alpha1.ConditionMemoryStalled
	conditionDrift         conditions.Kind = v1alpha1.ConditionDriftDetected
	conditionSettings      conditions.Kind = v1alpha1.ConditionSettingsMatchLimit
	conditionApplied       conditions.Kind = v1alpha1.ConditionApplied
)

func workloadConditions(s *Snapshot, st *State, v *result, now time.Time) []metav1.Condition {
	return []metav1.Condition{
		readyCondition(s, v),
		withRestarts(oomCondition(s, st, now), s, v),
		stallCondition(s, st, now),
		driftCondition(s, v),
		settingsCondition(&v.coverage),
		withProblems(appliedCondition(s, v), s, v),
	}
}

// Problem returns the reason of the first condition that needs attention; empty: none. A kill needs attention until
// running pods have the recommended size.
func Problem(all []metav1.Condition) string {
	problems := []conditions.Problem{
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionMemoryStalled, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionDriftDetected, Status: metav1.ConditionTrue},
	}
	if !meta.IsStatusConditionTrue(all, v1alpha1.ConditionApplied) {
		problems = append(problems, conditions.Problem{Type: v1alpha1.ConditionOOMObserved, Status: metav1.ConditionTrue})
	}
	settings := conditions.Problem{Type: v1alpha1.ConditionSettingsMatchLimit, Status: metav1.ConditionFalse}
	problems = append(problems, settings)
	ready := meta.FindStatusCondition(all, v1alpha1.ConditionReady)
	if ready != nil && ready.Reason == v1alpha1.ReasonUsageMissing {
		problems = append(problems, conditions.Problem{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse})
	}
	return conditions.First(all, problems...)
}

const modeDisabled = "The profile has sizing.mode: Disabled; set Recommend to get a recommendation"

func readyCondition(s *Snapshot, v *result) metav1.Condition {
	switch {
	case s.Profile.Spec.Sizing.Mode == v1alpha1.SizingDisabled:
		return conditionReady.False(v1alpha1.ReasonModeDisabled, modeDisabled)
	case len(v.recommended) == 0 && hasNoUsage(s):
		return conditionReady.False(v1alpha1.ReasonUsageMissing, v.status.Summary)
	case len(v.recommended) == 0:
		return conditionReady.False(v1alpha1.ReasonNotEnoughEvidence, v.status.Summary)
	}
	return conditionReady.True(v1alpha1.ReasonRecommendationReady, v.status.Summary)
}

func oomCondition(s *Snapshot, st *State, now time.Time) metav1.Condition {
	window, message := recentWindow(s), ""
	if kills := st.ledger.All(); len(kills) > 0 && now.Sub(kills[len(kills)-1].Time) <= window {
		last := &kills[len(kills)-1]
		message = fmt.Sprintf("OOM kill in pod %s at %s: %s", last.Container.Pod, format.Time(last.Time), report.Kill(last))
		if total, _ := st.ledger.Totals(); total > 1 {
			message += fmt.Sprintf("; %d so far", total)
		}
	}
	switch full := ledgerFull(&st.ledger); {
	case full != "":
		return conditionOOM.True(v1alpha1.ReasonLedgerFull, strings.TrimSuffix(full+". "+message, ". "))
	case message == "":
		return conditionOOM.False(v1alpha1.ReasonNoOOMKill, "No OOM kill in the last "+format.Duration(window))
	}
	return conditionOOM.True(v1alpha1.ReasonOOMKilled, message)
}

// ledgerFull describes a full ledger and what to do; empty: the ledger has space.
func ledgerFull(l *oom.Ledger) string {
	pods := l.NotFollowed()
	if pods == 0 {
		return ""
	}
	return fmt.Sprintf("The record of OOM kills is full, with about 10,000 pods whose containers restarted: kills in %s "+
		"are not counted until other pods of this workload are deleted. Find out why so many containers restart, or split "+
		"the workload", format.Count(pods, "pod"))
}

// driftCondition returns the DriftDetected condition. Growth comes before outliers, because it leads to kills.
func driftCondition(s *Snapshot, v *result) metav1.Condition {
	var known bool
	var outlier, doubtful string
	for i := range v.status.Containers {
		name := v.status.Containers[i].Container
		classified := v.shapes[name]
		known = known || classified.Kind != shape.Unknown
		if len(classified.Outliers) > 0 && outlier == "" {
			outlier = "Container " + name + ": " + v.aboveReplicas(name, classified.Outliers[0])
			if more := classified.Outliers[1:]; len(more) > 0 {
				outlier += "; also far above: " + strings.Join(more, ", ")
			}
		}
		if leak := v.leaks[name]; leak.Doubt != "" {
			doubtful = fmt.Sprintf("Container %s: %s: a leak, or still loading after its start, because %s", name, leak,
				leak.Doubt)
		} else if leak.Instances > 0 {
			return conditionDrift.True(v1alpha1.ReasonLeak, "Container "+name+": leak: "+leak.String()+restartNote(s, v))
		}
		if Drifts(classified) {
			reason := v1alpha1.ReasonStepRetention
			if classified.Kind == shape.Climb {
				reason = v1alpha1.ReasonClimb
			}
			return conditionDrift.True(reason, "Container "+name+": "+classified.Summary+restartNote(s, v))
		}
	}
	switch {
	case outlier != "":
		return conditionDrift.True(v1alpha1.ReasonOutlierReplica, outlier+restartNote(s, v))
	case doubtful != "":
		return conditionDrift.Unknown(v1alpha1.ReasonNotEnoughEvidence, doubtful)
	case !known:
		return conditionDrift.Unknown(v1alpha1.ReasonNotEnoughEvidence, "Not enough samples to classify memory over time")
	}
	return conditionDrift.False(v1alpha1.ReasonNoDrift, "Memory neither climbs nor stays high after load")
}

// restartNote returns the effect of drift.action: Restart, or what to do without it, to append to a message.
func restartNote(s *Snapshot, v *result) string {
	switch d := v.endangered; {
	case s.Profile.Spec.Drift.Action != v1alpha1.DriftRestart:
		return "; find out what holds the memory, or set drift.action: Restart to buy time"
	case d == nil:
		return ""
	case v.rollout.RestartBlocked != "":
		return "; not restarted, although " + d.Why + ": " + v.rollout.RestartBlocked
	default:
		return "; pod " + d.Pod + " is restarted: " + d.Why
	}
}

func settingsCondition(c *coverage) metav1.Condition {
	if c.outOfStep != "" {
		return conditionSettings.False(v1alpha1.ReasonRestartRequired, c.outOfStep)
	}
	const match = "Runtime settings match the current limit of every running container"
	return conditionSettings.True(v1alpha1.ReasonSettingsMatch, match)
}

// appliedCondition returns the Applied condition: whether running pods have the recommended size, and if not, why.
func appliedCondition(s *Snapshot, v *result) metav1.Condition {
	with, without := countApplied(s, v)
	switch mode := s.Profile.Spec.Sizing.Mode; {
	case v.rollout.RollsBack:
		return conditionApplied.False(v.rollout.Reason, v.rollout.Message)
	case mode == v1alpha1.SizingDisabled:
		return conditionApplied.False(v1alpha1.ReasonModeDisabled, modeDisabled)
	case s.Facts.Conflict != "":
		return conditionApplied.False(v1alpha1.ReasonConflict, fmt.Sprintf("memfit only recommends: the memory of this "+
			"workload is also managed by %s. To let memfit size it, %s; otherwise set sizing.mode: Disabled in the profile",
			s.Facts.Conflict, s.Facts.Remedy))
	case len(v.recommended) == 0:
		return conditionApplied.False(v1alpha1.ReasonNotEnoughEvidence, "No recommendation yet: "+v.status.Summary)
	case with+without > 0 && without == 0 && !resizes(mode):
		return conditionApplied.True(v1alpha1.ReasonUpToDate, "Every running pod has the recommended size")
	case s.paused != "" && (!resizes(mode) || with+without == 0):
		message := "Paused by " + s.paused + "; the recommendation is not applied until the annotation is removed"
		return conditionApplied.False(v1alpha1.ReasonPaused, message)
	case with+without == 0 && mode.SizesNewPods():
		message := nextPod(s, v)
		if s.NoWebhook {
			message += "; " + NoWebhook("sizing.mode: Recommend")
		}
		return conditionApplied.False(v1alpha1.ReasonWaitingForNewPods, message)
	case resizes(mode) && v.rollout.UpToDate:
		return conditionApplied.True(v.rollout.Reason, v.rollout.Message)
	case resizes(mode):
		return conditionApplied.False(v.rollout.Reason, v.rollout.Message)
	case mode == "" || mode == v1alpha1.SizingRecommend:
		next := "set OnCreate to give new pods the recommended size, or InPlace to resize running pods as well"
		if s.NoWebhook {
			next = "set InPlace to resize running pods. New pods get the recommended size only with memfit's webhook: " +
				"install it (" + installWebhook + "), then set OnCreate or InPlace"
		}
		return conditionApplied.False(v1alpha1.ReasonModeRecommend, "The profile has sizing.mode: Recommend; "+next)
	default:
		return conditionApplied.False(v1alpha1.ReasonWaitingForNewPods, format.OfPods(with, with+without)+
			" have the recommended size; running pods keep theirs until they are replaced; "+newPodsGet(s, v))
	}
}

// newPodsGet describes the size of new pods: the recommended size, or until when they get a larger one.
func newPodsGet(s *Snapshot, v *result) string {
	if s.NoWebhook {
		return NoWebhook("sizing.mode: Recommend")
	}
	for i := range v.status.Containers {
		c := &v.status.Containers[i]
		if c.Recommended == nil || c.NewPods == nil || c.Recommended.Limit == nil ||
			profile.SizeOf(*c.NewPods) == profile.SizeOf(*c.Recommended) {
			continue
		}
		get := "no limit"
		if c.NewPods.Limit != nil {
			get = "limit " + c.NewPods.Limit.String()
		}
		text := fmt.Sprintf("new pods get %s in container %s, until one pod has been watched with %s", get, c.Container,
			c.Recommended.Limit)
		if v.canaryWaits != "" {
			text += fmt.Sprintf("; the first pod with %s waits: sizing.disruption.%s", c.Recommended.Limit, v.canaryWaits)
		}
		return text
	}
	if refused := v.status.RefusedRequest; refused != nil {
		return fmt.Sprintf("new pods get the recommended limits. They keep their template's requests if they would "+
			"otherwise request %s or more, because no node had memory for such a pod in the last day", refused)
	}
	return "new pods get it"
}

const installWebhook = "docs/guide/install.md#then-injection"

// NoWebhook returns why new pods are unchanged, and what to do: install the webhook, or set mode, a setting that needs
// no webhook.
func NoWebhook(mode string) string {
	return "memfit was installed without its webhook, so new pods are unchanged: install the webhook (" + installWebhook +
		"), or set " + mode
}

// nextPod describes the recommendation of a workload without running pods, which may never have another pod.
func nextPod(s *Snapshot, v *result) string {
	size := "the recommended size is in status.containers"
	if limit := limitColumn(v.status.Containers, recommendedLimit); limit != "" {
		size = "the recommended limit is " + limit
	}
	ref := s.Owner.Ref
	switch {
	case !workloadkind.Lasting(ref.APIVersion, ref.Kind) && !workloadkind.IsIdentity(ref.APIVersion, ref.Kind):
		return fmt.Sprintf("No running pods, and this %s may never create another; if it does, %s. Another %s has its own "+
			"recommendation", ref.Kind, size, ref.Kind)
	case kindOf(ref).Completes:
		return "No running pods; for the next run, " + size
	}
	return "No running pods; for the next pod, " + size
}

// InConflict returns the message about a conflict with another autoscaler; "": no conflict.
func InConflict(s *v1alpha1.MemoryRecommendationStatus) string {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionApplied)
	if c == nil || c.Reason != v1alpha1.ReasonConflict {
		return ""
	}
	return c.Message
}

// countApplied counts the running pods with and without the recommended size in every container.
func countApplied(s *Snapshot, v *result) (with, without int32) {
	var managed []managedContainer
	for i, pod := range s.Governed {
		if i == 0 || !alike(pod, s.Governed[i-1]) {
			managed = Managed(s.Profile, pod)
		}
		fits := true
		for j := range managed {
			size, found := v.recommended[managed[j].Name]
			fits = fits && (!found || size == sizeEffective(constraints.Find(pod, managed[j].Name)))
		}
		if fits {
			with++
		} else {
			without++
		}
	}
	return with, without
}
