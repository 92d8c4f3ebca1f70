// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profilestatus computes the status of a profile: a summary of its workloads, and its conditions. It performs
// no I/O and reads no clock; controllers/profile calls it.
package profilestatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/conditions"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workload"
)

// maxWorkloads bounds the workloads in a status, so that it remains readable and far below etcd's size limit.
const maxWorkloads = 20

// Input is the input of a profile's status.
type Input struct {
	Profile         *profile.Profile
	Recommendations []v1alpha1.MemoryRecommendation
	Gaps            []memory.Silence
	UsageOff        bool
	Ambiguous       []string
	Invalid         []string
	// NoWebhook is true if memfit runs without its webhook, and changes no new pod.
	NoWebhook bool
	// EffectiveDefaults is the effective profile with role Defaults of the scope; only for role Defaults.
	EffectiveDefaults *profile.Profile
	Heirs             int // number of profiles that inherit from Profile; only for role Defaults
}

// Summarize returns a profile's status, without changing its input.
func Summarize(in Input) v1alpha1.MemoryProfileStatus {
	status := summarize(in)
	status.Problem = problem(status.Conditions)
	return status
}

// The conditions of a profile.
const (
	conditionReady      conditions.Kind = v1alpha1.ConditionReady
	conditionConflicted conditions.Kind = v1alpha1.ConditionConflicted
	conditionUsage      conditions.Kind = v1alpha1.ConditionUsageAvailable
	conditionIdentities conditions.Kind = v1alpha1.ConditionIdentitiesBounded
	conditionInjection  conditions.Kind = v1alpha1.ConditionInjectionUpToDate
	conditionStalled    conditions.Kind = v1alpha1.ConditionStalled
)

// problem returns the reason of the first condition that needs attention; empty: none.
func problem(all []metav1.Condition) string {
	first := conditions.First(all,
		conditions.Problem{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse},
		conditions.Problem{Type: v1alpha1.ConditionConflicted, Status: metav1.ConditionTrue},
		conditions.Problem{Type: v1alpha1.ConditionUsageAvailable, Status: metav1.ConditionFalse},
		conditions.Problem{Type: v1alpha1.ConditionIdentitiesBounded, Status: metav1.ConditionTrue},
		conditions.Problem{Type: v1alpha1.ConditionInjectionUpToDate, Status: metav1.ConditionFalse},
	)
	ready := meta.FindStatusCondition(all, v1alpha1.ConditionReady)
	if first == "" && ready != nil && ready.Reason == v1alpha1.ReasonNoPodsMatched {
		return ready.Reason
	}
	return first
}

func summarize(in Input) v1alpha1.MemoryProfileStatus {
	if in.Profile.HoldsDefaults() {
		return summarizeDefaults(in)
	}
	var status v1alpha1.MemoryProfileStatus
	status.SizingMode = in.Profile.Container("", nil).Sizing.Mode
	var f found
	for i := range in.Recommendations {
		rec := &in.Recommendations[i]
		line := workloadLine(in.Profile, rec)
		f.add(&rec.Status, line.Name)
		status.OOMKills += rec.Status.OOMKills
		status.Workloads = append(status.Workloads, line)
	}
	slices.Sort(f.outOfDate)
	slices.Sort(f.conflicts)
	slices.SortFunc(status.Workloads, func(a, b v1alpha1.WorkloadSummary) int {
		return cmp.Or(cmp.Compare(b.OOMKills, a.OOMKills), cmp.Compare(a.Name, b.Name))
	})
	if over := len(status.Workloads) - maxWorkloads; over > 0 {
		status.Workloads, status.WorkloadsOmitted = status.Workloads[:maxWorkloads], int32(min(over, 1<<30))
	}
	status.Coverage = &f.pods
	status.Pods = fmt.Sprintf("%d/%d", f.pods.Injected, f.pods.Governed)
	status.Summary = profileSummary(in, &f, status.OOMKills)
	status.Conditions = []metav1.Condition{
		profileReady(in, status.Summary),
		injectionCondition(in, &f),
		usageCondition(in),
		conflictCondition(in, f.conflicts),
	}
	status.Conditions = append(append(status.Conditions, identitiesBounded(f.identities)...), stalled(in)...)
	return status
}

// found sums up the recommendations of a profile.
type found struct {
	pods              v1alpha1.Coverage
	ready, identities int
	// outOfDate are workloads with pods that lack the current settings, conflicts those that another autoscaler sizes.
	outOfDate, conflicts []string
}

func (f *found) add(s *v1alpha1.MemoryRecommendationStatus, name string) {
	if c := s.Coverage; c != nil {
		f.pods.Governed += c.Governed
		f.pods.Injected += c.Injected
		f.pods.Missed += c.Missed
		f.pods.Stale += c.Stale
		f.pods.Skipped += c.Skipped
		if c.Missed+c.Stale > 0 {
			f.outOfDate = append(f.outOfDate, name)
		}
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
		f.ready++
	}
	if s.Identity != nil {
		f.identities++
	}
	if with := workload.InConflict(s); with != "" {
		f.conflicts = append(f.conflicts, name+": "+with)
	}
}

// identitiesBounded returns a condition while the profile has its maximum of identities.
func identitiesBounded(n int) []metav1.Condition {
	if n < identity.MaxPerProfile {
		return nil
	}
	return []metav1.Condition{conditionIdentities.True(
		v1alpha1.ReasonTooManyIdentities,
		fmt.Sprintf("%d pod identities are recorded, the maximum of one profile: pods of further identities keep their "+
			"own size. Set spec.identity.labels to labels that do not differ from run to run, and nodeClass to one that "+
			"does not differ from node to node, or split the profile; an identity ends 35 days after its last pod", n),
	)}
}

// stalled returns the condition Stalled of kstatus while the profile is invalid.
func stalled(in Input) []metav1.Condition {
	if len(in.Invalid) == 0 {
		return nil
	}
	return []metav1.Condition{conditionStalled.True(v1alpha1.ReasonInvalidSpec, strings.Join(in.Invalid, "; "))}
}

// summarizeDefaults returns the status of a profile with role Defaults.
func summarizeDefaults(in Input) v1alpha1.MemoryProfileStatus {
	status := v1alpha1.MemoryProfileStatus{SizingMode: in.Profile.Spec.Sizing.Mode}
	conflicted := conditionConflicted.False(v1alpha1.ReasonNoConflict, "No other profile of this scope has role: Defaults")
	var ready metav1.Condition
	switch {
	case len(in.Invalid) > 0:
		status.Summary = "Not effective: " + in.Invalid[0]
		ready = profileReady(in, status.Summary)
	case in.EffectiveDefaults != nil && in.EffectiveDefaults != in.Profile:
		status.Summary = fmt.Sprintf("Not effective: %s also has role: Defaults and is older: move the values into one "+
			"of them, and delete the other", in.EffectiveDefaults)
		ready = conditionReady.False(v1alpha1.ReasonAmbiguousDefaults, status.Summary)
		conflicted = conditionConflicted.True(v1alpha1.ReasonAmbiguousDefaults, status.Summary)
	default:
		status.Summary = fmt.Sprintf("Provides defaults for %s", format.Count(in.Heirs, "profile"))
		ready = conditionReady.True(v1alpha1.ReasonInherited, status.Summary)
	}
	status.Conditions = append([]metav1.Condition{ready, conflicted}, stalled(in)...)
	return status
}

func workloadLine(n *profile.Profile, rec *v1alpha1.MemoryRecommendation) v1alpha1.WorkloadSummary {
	w, where := rec.Status.Workload, ""
	name := w.Kind + " " + w.Name
	if n.Namespace == "" {
		name, where = w.Kind+" "+rec.Namespace+"/"+w.Name, " in "+rec.Namespace
	}
	if id := rec.Status.Identity; id != nil {
		if class := identity.NodeClassOf(id.Platform, id.Values); class != "" {
			name = identity.OnNodes(name, class)
		} else {
			name = identity.Title(id.Platform, id.Values) + where
		}
	}
	return v1alpha1.WorkloadSummary{
		Name: name, OOMKills: rec.Status.OOMKills, Recommendation: rec.Name, Summary: rec.Status.Summary,
	}
}

func profileSummary(in Input, f *found, kills int64) string {
	if len(in.Invalid) > 0 {
		return "Not effective: " + in.Invalid[0]
	}
	if len(in.Recommendations) == 0 {
		return "Governs no pod"
	}
	all := len(in.Recommendations)
	return fmt.Sprintf("Governs %s of %s; %d run with its settings; %s so far; %d of %d recommendations ready",
		format.Count(f.pods.Governed, "pod"), format.Count(all, "workload"), f.pods.Injected,
		format.Count(kills, "OOM kill"), f.ready, all)
}

func profileReady(in Input, summary string) metav1.Condition {
	switch {
	case len(in.Invalid) > 0:
		return conditionReady.False(v1alpha1.ReasonInvalidSpec, strings.Join(in.Invalid, "; "))
	case len(in.Recommendations) == 0:
		return conditionReady.True(v1alpha1.ReasonNoPodsMatched, noPodsMessage(in))
	default:
		return conditionReady.True(v1alpha1.ReasonEffective, summary)
	}
}

func noPodsMessage(in Input) string {
	opt := "annotate a workload, its pod template or its namespace with " + v1alpha1.ProfileAnnotation + ": " +
		in.Profile.Ref.Name
	if in.Profile.Spec.Selector != nil {
		where := ""
		if in.Profile.NamespaceSelector != nil {
			where = " in a namespace that spec.namespaceSelector selects"
		}
		return "No running pod matches spec.selector" + where + "; check the labels of the pod template, or " + opt
	}
	return "No running pod uses this profile: " + opt
}

func injectionCondition(in Input, f *found) metav1.Condition {
	cov := &f.pods
	mode, has := in.Profile.Spec.Tuning.Mode, "has"
	if in.Profile.Declared().Tuning.Mode == "" {
		has = "inherits"
	}
	next := "New pods get them: restart " + strings.Join(format.Few(f.outOfDate, 3), ", ") + " at a convenient time"
	if in.NoWebhook {
		next = workload.NoWebhook("tuning.mode: DryRun")
	}
	switch {
	case mode == v1alpha1.TuningDisabled || mode == v1alpha1.TuningDryRun:
		return conditionInjection.True(
			v1alpha1.ReasonInjectionDisabled, "The profile "+has+" tuning.mode: "+string(mode)+"; nothing is set on pods",
		)
	case cov.Governed == 0:
		return conditionInjection.True(v1alpha1.ReasonNoPodsMatched, "No running pod is governed")
	case cov.Missed+cov.Stale > 0:
		return conditionInjection.False(v1alpha1.ReasonPodsOutOfDate,
			fmt.Sprintf("%s run without the profile's current settings: %d created without memfit, %d with older settings. "+
				"%s", format.OfPods(cov.Missed+cov.Stale, cov.Governed), cov.Missed, cov.Stale, next))
	default:
		text := format.OfPods(cov.Injected, cov.Governed) + " run with the profile's settings"
		if cov.Skipped > 0 {
			text += fmt.Sprintf(
				"; in %d every setting is skipped: see the pod's annotation %s", cov.Skipped,
				v1alpha1.InjectedAnnotation,
			)
		}
		return conditionInjection.True(v1alpha1.ReasonAllInjected, text)
	}
}

func usageCondition(in Input) metav1.Condition {
	switch {
	case in.UsageOff:
		return conditionUsage.False(
			v1alpha1.ReasonUsageMissing,
			"memfit runs with --usage-interval=0 and reads no usage: only OOM kills change a size. Remove the flag to read "+
				"usage",
		)
	case len(in.Gaps) == 0:
		return conditionUsage.True(v1alpha1.ReasonUsageRead, "Every node that hosts governed pods reports usage")
	}
	return conditionUsage.False(
		v1alpha1.ReasonUsageMissing,
		"Usage unavailable from "+format.SilentNodes(in.Gaps)+"; memfit changes no size until it is available ("+
			workload.UsageHelp+")",
	)
}

// conflictCondition names profiles that select the same pods, then workloads that another autoscaler sizes (others).
func conflictCondition(in Input, others []string) metav1.Condition {
	reason := v1alpha1.ReasonAmbiguousProfile
	switch {
	case len(in.Ambiguous)+len(others) == 0:
		return conditionConflicted.False(
			v1alpha1.ReasonNoConflict,
			"No other profile claims these pods, and no other autoscaler sizes their memory",
		)
	case len(in.Ambiguous) == 0:
		reason = v1alpha1.ReasonConflict
	}
	shown := slices.Concat(format.Few(in.Ambiguous, 3), format.Few(others, 3))
	return conditionConflicted.True(reason, strings.Join(shown, "; "))
}
