// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/quote"
)

// unnamed returns, by container, what to do about OOM-killed init containers that memfit does not size because the
// profile does not list them.
func unnamed(p *profile.Profile, pod *corev1.Pod, l *oom.Ledger) map[string]string {
	texts := map[string]string{}
	for i := range pod.Spec.InitContainers {
		name := pod.Spec.InitContainers[i].Name
		known := l.Kills(name)
		if len(known) == 0 || !p.Container(name, pod.Annotations).Managed ||
			slices.ContainsFunc(Managed(p, pod), func(c managedContainer) bool { return c.Name == name }) {
			continue
		}
		last := known[len(known)-1]
		limit := "no limit of its own"
		if last.Limit > 0 {
			limit = "limit " + last.Limit.String()
		}
		texts[name] = fmt.Sprintf("Init container %s was OOM-killed %s, last at %s with %s; init containers are only "+
			"sized when the profile lists them: add {name: %s} to spec.containers of %s, or raise its limit yourself", name,
			format.Count(l.Total(name), "time"), format.Time(last.Time), limit, name, p)
	}
	return texts
}

// throttledHeap returns advice if the heap of a container's replica may grow beyond memory.high: the kernel then slows
// it down before its runtime collects. Empty: not the case, or unknown.
func throttledHeap(s *Snapshot, container string) string {
	for _, pod := range s.Governed { // newest first
		seen := s.seenByAgent(pod, container)
		if seen == nil || seen.High == nil {
			continue
		}
		high := amount(*seen.High)
		frozen := inject.OfRunning(pod, s.Profile, nil).Container(container).Frozen()
		heap := cmp.Or(frozen.Cap, inject.HeapCap(pod, container))
		if heap <= high {
			continue
		}
		return fmt.Sprintf("pod %s: the heap may grow to %s, and from %s on the kernel slows the container down "+
			"(memory.high, which the kubelet's MemoryQoS puts between request and limit): raise the request, or lower "+
			"heapPercent", pod.Name, heap, high)
	}
	return ""
}

// UsageHelp names the section of the documentation about missing usage.
const UsageHelp = `what to do: docs/guide/troubleshooting.md, "Usage cannot be read"`

// silence returns why samples of a workload are missing, and what to do; empty: all of its nodes report.
func silence(s *Snapshot) string {
	if s.Unmeasured {
		return "memfit runs with --usage-interval=0 and reads no usage: only OOM kills change a size"
	}
	nodes, _ := silent(s)
	if len(nodes) == 0 {
		return ""
	}
	return "usage cannot be read from " + format.Silent(nodes) + " (" + UsageHelp + ")"
}

// unmeasured reports whether no pod of the workload has usage, so that waiting brings no evidence.
func unmeasured(s *Snapshot) bool {
	_, all := silent(s)
	return s.Unmeasured || all
}

// silent returns the workload's nodes that report no usage; all: there are no others.
func silent(s *Snapshot) (nodes []memory.Silence, all bool) {
	if len(s.Silent) == 0 {
		return nil, false
	}
	ours := map[string]bool{}
	for _, pod := range s.Governed {
		if pod.Spec.NodeName != "" {
			ours[pod.Spec.NodeName] = true
		}
	}
	nodes = slices.DeleteFunc(slices.Clone(s.Silent), func(n memory.Silence) bool { return !ours[n.Node] })
	return nodes, len(nodes) > 0 && len(nodes) == len(ours)
}

// unseenFor is how long a running container may have no readings: longer than three of the slowest interval, and than
// clocks of nodes may be behind.
const unseenFor = 15 * time.Minute

// unseen describes, by name, a container of a ready pod that has no readings for a while, as on a node whose usage
// cannot be read: what the others use does not show what it needs. A new memfit knows none until it has read them.
func (st *State) unseen(s *Snapshot, now time.Time) map[string]string {
	all := map[string]string{}
	if s.Unmeasured {
		return all
	}
	for _, pod := range slices.Backward(s.Governed) {
		if !serves(pod) {
			continue
		}
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
			for i := range statuses {
				c := &statuses[i]
				if c.State.Running == nil || all[c.Name] != "" {
					continue
				}
				last := c.State.Running.StartedAt.Time
				if in := st.instanceIn(pod, c.Name); in != nil && in.recent.lastAt().After(last) {
					last = in.recent.lastAt()
				}
				if now.Sub(last) > unseenFor {
					all[c.Name] = fmt.Sprintf("usage of container %s in pod %s on node %s was not read since %s", c.Name, pod.Name,
						pod.Spec.NodeName, format.Time(last))
				}
			}
		}
	}
	return all
}

const (
	// fewRestarts is the least number of reported restarts: one or two may be from a probe.
	fewRestarts = 3
	// linesKept bounds the quoted lines of a termination message, and maxLastLines their bytes.
	linesKept, maxLastLines = 2, 256
	maxVolumes              = 8

	exitBus         = 135 // SIGBUS: a page of a full tmpfs was touched
	reasonOOMKilled = "OOMKilled"
	reasonLost      = "ContainerStatusUnknown"
)

// unexplainedRestarts returns the restarts of a container in governed pods without a recorded kill; nil: fewer than
// [fewRestarts], or none within the window.
func unexplainedRestarts(s *Snapshot, l *oom.Ledger, container string, now time.Time) *v1alpha1.UnexplainedRestarts {
	var all, explained int64
	var last *corev1.ContainerStateTerminated
	var in *corev1.Pod
	kills := l.Kills(container)
	for _, pod := range s.Governed {
		spec, status := constraints.Find(pod, container)
		if spec == nil || status == nil || status.RestartCount == 0 {
			continue
		}
		restarts := int64(status.RestartCount)
		if oom.RestartsOnResize(spec) { // each resize of the pod may be one
			restarts = max(restarts-max(pod.Generation-1, 0), 0)
		}
		all += restarts
		ended := slices.DeleteFunc(slices.Clone(kills), func(k memory.OOMKill) bool {
			return k.Container.UID != pod.UID || k.Kind == memory.OOMChildProcess
		})
		explained += int64(len(ended))
		t := lastEnd(status)
		isIt := func(k memory.OOMKill) bool { return k.Time.Equal(t.FinishedAt.UTC().Truncate(time.Second)) }
		if t != nil && !slices.ContainsFunc(ended, isIt) && (last == nil || last.FinishedAt.Before(&t.FinishedAt)) {
			last, in = t, pod
		}
	}
	if total := l.Total(container); total > int64(len(kills)) { // some details were dropped
		explained = total
	}
	if last == nil || all-explained < fewRestarts || now.Sub(last.FinishedAt.Time) > window(s) {
		return nil
	}
	u := &v1alpha1.UnexplainedRestarts{
		Count:    int32(min(all-explained, 1<<30)),
		ExitCode: last.ExitCode, LastLines: lastLines(last.Message), Pod: in.Name, Time: last.FinishedAt,
	}
	unsized := false
	spec, _ := constraints.Find(in, container)
	for _, v := range inject.MemoryVolumes(in, spec) {
		if len(u.MemoryVolumes) < maxVolumes {
			u.MemoryVolumes, unsized = append(u.MemoryVolumes, v.Name), unsized || v.SizeLimit == 0
		}
	}
	u.Resized = unsized && inject.RaisedInPlace(in, s.Profile, container)
	return u
}

// lastEnd returns the end of the last instance; nil: unknown, or the kubelet has a reason.
func lastEnd(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	t := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if t == nil || t.Reason == reasonOOMKilled || t.Reason == reasonLost {
		return nil
	}
	return t
}

// lastLines returns the last non-empty lines of a termination message on one line.
func lastLines(message string) string {
	const tail = 4 * maxLastLines // of a message, which the kubelet truncates to 4 KiB
	message = strings.ToValidUTF8(message[max(0, len(message)-tail):], "")
	var kept []string
	for _, line := range slices.Backward(strings.Split(message, "\n")) {
		if line = strings.TrimSpace(line); line != "" && len(kept) < linesKept {
			kept = append(kept, line)
		}
	}
	slices.Reverse(kept)
	return quote.Cut(quote.Line(strings.Join(kept, " | ")), maxLastLines)
}

// restartsSentence returns "container app restarted 26 times, cause unknown: last exit 1 in pod web-0 at ...", with
// what to do, in at most 400 characters.
func restartsSentence(s *Snapshot, container string, u *v1alpha1.UnexplainedRestarts) string {
	code := fmt.Sprint(u.ExitCode)
	if u.ExitCode == exitBus {
		code += " (SIGBUS)"
	}
	text := fmt.Sprintf("container %s restarted %s, cause unknown: last exit %s in pod %s at %s", container,
		format.Count(u.Count, "time"), code, u.Pod, format.Time(u.Time.Time))
	if u.LastLines != "" {
		text += ", message " + quote.Name(u.LastLines)
	} else if len(u.MemoryVolumes) == 0 {
		return text + ": see kubectl logs --previous, or set terminationMessagePolicy: FallbackToLogsOnError"
	}
	switch {
	case u.Resized:
		text += fmt.Sprintf("; the pod was raised in place and %s the size from its creation: %s, or set emptyDir.sizeLimit",
			volumesKeep(u.MemoryVolumes), deletePod(s, u.Pod))
	case len(u.MemoryVolumes) > 0:
		text += fmt.Sprintf("; %s the files over restarts: if it is full, %s, or set a larger emptyDir.sizeLimit",
			volumesKeep(u.MemoryVolumes), deletePod(s, u.Pod))
	}
	return text
}

func volumesKeep(names []string) string {
	if len(names) == 1 {
		return "memory-backed volume " + names[0] + " keeps"
	}
	return fmt.Sprintf("memory-backed volumes %s and %d more keep", names[0], len(names)-1)
}

func deletePod(s *Snapshot, pod string) string {
	return fmt.Sprintf("delete the pod (kubectl delete pod %s -n %s)", pod, s.Owner.Ref.Namespace)
}

// reportRestarts sets the unexplained restarts, and adds them and outgrown volumes to the advisories.
func (d *decider) reportRestarts() {
	v := &d.v
	var texts []string
	resized := false
	for i := range v.status.Containers {
		c := &v.status.Containers[i]
		u := unexplainedRestarts(d.s, &d.st.ledger, c.Container, d.now)
		if c.UnexplainedRestarts = u; u != nil {
			resized = resized || u.Resized
			texts = append(texts, sentenceCase(restartsSentence(d.s, c.Container, u)))
		}
	}
	if v.outgrown = outgrown(d.s); v.outgrown != "" && !resized {
		texts = append(texts, sentenceCase(v.outgrown))
	}
	v.status.Advisories = append(texts, v.status.Advisories...)
}

// outgrown describes a pod that was raised in place and whose memory-backed volume kept its size; empty: none.
func outgrown(s *Snapshot) string {
	for _, p := range s.Governed {
		for c := range constraints.Containers(&p.Spec) {
			volumes := inject.MemoryVolumes(p, c)
			n := slices.IndexFunc(volumes, func(v inject.MemoryVolume) bool { return v.SizeLimit == 0 })
			if n >= 0 && inject.RaisedInPlace(p, s.Profile, c.Name) {
				return fmt.Sprintf("pod %s was raised in place, and %s the size from its creation: %s when it needs more, or set "+
					"emptyDir.sizeLimit", p.Name, volumesKeep([]string{volumes[n].Name}), deletePod(s, p.Name))
			}
		}
	}
	return ""
}

// qualified returns the Applied condition, with a reason why an applied size does not suffice, if any.
func qualified(c metav1.Condition, s *Snapshot, v *result) metav1.Condition {
	if c.Status != metav1.ConditionTrue {
		return c
	}
	switch r := v.restarting(); {
	case r != nil && r.UnexplainedRestarts.Resized:
		why := sentenceCase(restartsSentence(s, r.Container, r.UnexplainedRestarts))
		return conditionApplied.False(v1alpha1.ReasonVolumeKeepsSize, why)
	case r != nil:
		c.Message += "; " + restartsSentence(s, r.Container, r.UnexplainedRestarts)
	case v.outgrown != "":
		c.Message += "; " + v.outgrown
	}
	return c
}

// restarting returns the first container with unexplained restarts; nil: none.
func (v *result) restarting() *v1alpha1.ContainerRecommendation {
	for i := range v.status.Containers {
		if c := &v.status.Containers[i]; c.UnexplainedRestarts != nil {
			return c
		}
	}
	return nil
}

func sentenceCase(clause string) string { return strings.ToUpper(clause[:1]) + clause[1:] }

// window returns how long events are recent.
func window(s *Snapshot) time.Duration { return s.Profile.Drift().Window.Duration }

// withRestarts returns the condition without kills, with the first unexplained restarts.
func withRestarts(c metav1.Condition, s *Snapshot, v *result) metav1.Condition {
	if r := v.restarting(); r != nil && c.Status == metav1.ConditionFalse {
		c.Message += "; " + restartsSentence(s, r.Container, r.UnexplainedRestarts)
	}
	return c
}
