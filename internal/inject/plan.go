// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/runtimes"
)

// Input is the input of MakePlan, which does not modify it.
type Input struct {
	Pod     *corev1.Pod
	Profile *profile.Profile
	// Sizes are the sizes for new pods by container name; a request or limit of 0 leaves the pod's own. nil: none.
	Sizes map[string]Offer
	// Facts are the bounds of LimitRanges, quotas and nodes. nil: unknown, so they do not bound sizes.
	Facts *constraints.Facts
	// Observed is the data about running replicas by container name. nil: none.
	Observed map[string]Observed
	// ConfigMapKeys are the keys of the readable ConfigMaps of the pod's namespace, by name. Others may have any key.
	ConfigMapKeys map[string]map[string]bool
	// PerRun is true if the pod is one run of an identity. Command, args and env then differ by run, so programs are
	// distinguished only by image.
	PerRun    bool
	SizesOnly bool // the pod is a template: change only memory, because the webhook plans settings for its pods
	Created   bool // the pod exists: its settings were planned with the keys of its ConfigMaps

	// Set by MakePlan: the record in the pod's annotation, and the limit of the whole pod.
	before *record
	whole  memory.Bytes
}

// Plan has the settings and sizes that memfit sets on a pod, and the skipped ones, with reasons. Methods do not change
// it.
type Plan struct {
	containers []ContainerPlan
	whole      *memory.Size // the new size of the whole pod; nil: unchanged
	notes      []string     // about the pod's annotations, for warnings
	annotation string       // new value of InjectedAnnotation; empty: none
	annotated  bool         // whether the annotation differs from the pod's
	refused    string       // the reason for no plan; empty: planned
}

// maxContainers bounds the cost of a plan. It is ten times the containers of the largest usual pods.
const maxContainers = 256

// Refused returns why memfit made no plan for a pod with too many containers; empty: it made one.
func (p Plan) Refused() string { return p.refused }

// tip is advice about a setting, or any advice without one; see [ContainerPlan.Advice].
type tip struct{ setting, text string }

// advise adds advice without a setting.
func (c *ContainerPlan) advise(texts ...string) {
	for _, text := range texts {
		c.advice = append(c.advice, tip{text: text})
	}
}

// ContainerPlan is the outcome for one container.
type ContainerPlan struct {
	name    string
	before  *containerRecord // the record in the pod's annotation; nil: none
	mode    v1alpha1.TuningMode
	runtime identity
	limit   limit
	facts   runtimes.Facts

	set            []setting
	skips          []skip
	advice         []tip
	warned         []warning
	sharesPodLimit bool      // it has no limit of its own below the limit of the whole pod
	owner          ownersCap // the owner's decision about the heap cap
	found          int32     // the heap cap that agents read in replicas of this image, as a share of the limit; 0: none

	// heapByNode is true if the running process sizes its heap by the node's memory, because it was started without the
	// setting that makes the heap a share of the limit.
	heapByNode bool

	edit    Edit
	sized   *sizeRecord // the size that memfit sets, and the previous one; nil: unchanged
	refused string      // why the container does not get the recommended size, for the pod's creator; empty: it does
}

// setting is one knob that is set.
type setting struct {
	knob    *runtimes.Knob
	verdict runtimes.Verdict
	runtime *runtimes.Runtime
	replace bool // the profile names it in tuning.replace, so it replaces the user's value
}

// text returns "GOMEMLIMIT=483183820 (90 % of 512Mi)" or "NODE_OPTIONS: --max-old-space-size=381 (...)".
func (s setting) text() string {
	return s.assignment() + " (" + s.verdict.Why + ")"
}

// follows returns how the setting depends on the limit.
func (s setting) follows() runtimes.Follows {
	if s.verdict.AtCreation {
		return runtimes.Literal
	}
	return s.knob.Follows
}

func (s setting) assignment() string {
	if s.knob.List != nil {
		return s.knob.Env + ": " + s.verdict.Value
	}
	return s.knob.Env + "=" + s.verdict.Value
}

// skip is one knob that is not set.
type skip struct {
	name, why     string
	belowLiveHeap bool // the cap is too small for the live heap
}

func (s skip) text() string { return s.name + " skipped: " + s.why }

// MakePlan decides what to set on in.Pod. It never panics. Without pod or profile, and for a mirror pod, the plan is
// empty.
//
// MakePlan first reverts the changes of an earlier plan, by the annotation. So it is idempotent, and correct after
// another webhook changed the limit.
func MakePlan(in Input) Plan {
	if in.Pod == nil || in.Profile == nil || in.Profile.Spec == nil {
		return Plan{}
	}
	if _, mirror := in.Pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return Plan{}
	}
	if n := len(in.Pod.Spec.InitContainers) + len(in.Pod.Spec.Containers); n > maxContainers {
		why := fmt.Sprintf("nothing is set: the pod has %d containers, and memfit plans for at most %d", n, maxContainers)
		return Plan{refused: why, notes: []string{why}}
	}
	in.before = readRecord(in.Pod.Annotations[v1alpha1.InjectedAnnotation])
	after := newRecord(in.Profile)
	managed := targets(in)
	p := Plan{containers: make([]ContainerPlan, 0, len(managed))}
	sizings, whole := in.sizings(managed)
	if whole.next != constraints.WholeSize(in.Pod) {
		p.whole = &whole.next
	}
	in.whole, after.Pod = whole.next.Limit, whole.rec
	for i, t := range managed {
		c, rec := planContainer(in, t, sizings[i])
		p.containers = append(p.containers, c)
		p.notes = append(p.notes, t.policy.Notes...)
		if rec != nil {
			after.Containers[c.name] = rec
		}
	}
	p.checkShares(in.Pod, in.whole)
	if whole := in.Pod.Spec.Resources; whole != nil && len(p.containers) > 0 {
		p.containers[0].checkSize("the pod's ", whole, constraints.WholeSize(in.Pod))
	}
	text, fits := after.text(space(in.Pod))
	if !fits {
		return Plan{notes: []string{fmt.Sprintf("nothing is set: the pod's annotations exceed 256 KiB with %s, which "+
			"records what was set", v1alpha1.InjectedAnnotation)}}
	}
	p.annotation = text
	p.annotated = p.annotation != in.Pod.Annotations[v1alpha1.InjectedAnnotation] &&
		(p.annotation != "" || in.before != nil)
	return p
}

// OfRunning returns the plan for a running pod with the current profile. observed is the data about its replicas.
func OfRunning(pod *corev1.Pod, n *profile.Profile, observed map[string]Observed) Plan {
	return MakePlan(Input{Pod: pod, Profile: n, Observed: observed, Created: true})
}

// planContainer plans one container.
func planContainer(in Input, t target, s sizing) (ContainerPlan, *containerRecord) {
	w := t.work
	c := ContainerPlan{
		name: t.container.Name, before: t.before, mode: t.policy.Tuning.Mode, runtime: identify(t), sized: w.before.Size,
	}
	w.gather(c.runtime.runtime)
	if in.SizesOnly && c.mode == v1alpha1.TuningInject {
		c.mode = v1alpha1.TuningDisabled
	}
	if c.mode != v1alpha1.TuningDryRun {
		c.size(s, w)
	}
	c.checkSize("", &t.container.Resources, w.memory)
	c.sharesPodLimit = w.memory.Limit == 0 && in.whole > 0
	c.limit = effectiveLimit(w.memory.Limit, in.whole, t.volumesHold, divisionOf(t.policy.Tuning))
	c.facts = facts(in, t, w, c.runtime, c.limit)
	c.facts.Live, c.facts.ProvenHeapCap = c.proven(in, t)
	c.owner, c.found = w.ownersCap(in, t, c.runtime.runtime), t.heapShare(c.runtime.runtime)
	if c.mode != v1alpha1.TuningDisabled {
		c.evaluateKnobs(w, t, in)
	}
	c.checkValues(w)
	c.checkVolumes(in.Pod, t)
	if c.mode == v1alpha1.TuningInject {
		w.resizePolicy(in.Pod, t, c.restartHelps())
		w.write(c.set)
	}
	c.finish(t.container, w)
	c.heapByNode = in.Created && c.facts.LimitUnseen && (c.edit.Env != nil || c.mode != v1alpha1.TuningInject)
	if c.mode == v1alpha1.TuningDryRun {
		w.write(c.set) // after finish: only the record has what would be set
	}
	return c, c.record(w, t)
}

// restartHelps reports whether a restart of the container would adapt one of its settings to a new limit.
func (c *ContainerPlan) restartHelps() bool {
	return c.runtime.certain && slices.ContainsFunc(c.set, func(s setting) bool {
		return s.follows() == runtimes.AtStart && !s.verdict.Fixed
	})
}

// facts collects the input of the knobs' Derive functions.
func facts(in Input, t target, w *working, id identity, l limit) runtimes.Facts {
	spec := id.spec
	f := runtimes.Facts{
		Limit: l.effective, Cgroup: l.cgroup, LimitText: l.text,
		Processes: l.division.processes, Tuning: tuningOf(t.policy.Tuning),
	}
	f.Variant = string(spec.Variant)
	if spec.Version != "" {
		f.Version = runtimes.ParseVersion(spec.Version)
	}
	switch {
	case spec.Libc == v1alpha1.LibcMusl:
		f.NoGlibc = "the profile sets musl, whose malloc has no such setting"
	case in.Pod.Spec.OS != nil && in.Pod.Spec.OS.Name == corev1.Windows:
		f.NoGlibc = "Windows has no glibc"
	}
	f.LimitUnseen = t.limitUnseen(id.runtime)
	f.Own = w.owns(id.runtime)
	return f
}

// tuningOf converts the profile's tuning to the input of knobs.
func tuningOf(t v1alpha1.TuningSpec) runtimes.Tuning {
	a := runtimes.Tuning{
		ArenaMax: t.ArenaMax, HeapLimit: profile.BytesOf(t.HeapLimit), TrimThreshold: profile.BytesOf(t.TrimThreshold),
	}
	if t.HeapPercent != nil {
		a.HeapPercent = *t.HeapPercent
	}
	if t.TrimInterval != nil {
		a.TrimInterval = &t.TrimInterval.Duration
	}
	if t.Go != nil {
		a.AutoMemLimit = t.Go.MemoryLimitBy == "AUTOMEMLIMIT"
		a.OnlyAtLimit, a.Cgo = t.Go.GC == "OnlyAtLimit", t.Go.Cgo == "Used"
	}
	if t.JVM != nil && t.JVM.G1PeriodicGCInterval != nil {
		a.G1PeriodicGCInterval = t.JVM.G1PeriodicGCInterval.Duration
	}
	if t.NodeJS != nil {
		a.WorkersLimited, a.SemiSpace = t.NodeJS.WorkerThreads == "OwnLimits", profile.BytesOf(t.NodeJS.SemiSpace)
	}
	if t.DotNet != nil {
		a.ConserveMemory = t.DotNet.ConserveMemory
	}
	return a
}
