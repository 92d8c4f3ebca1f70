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

// unlistedInitAdvice returns advice about OOM-killed init containers, by name, which memfit does not size because the
// profile does not list them.
func unlistedInitAdvice(p *profile.Profile, pod *corev1.Pod, l *oom.Ledger) map[string]string {
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

// throttledHeap returns advice if the heap of a replica may grow beyond memory.high, above which the kernel throttles
// the container; empty: no such heap, or unknown.
func throttledHeap(s *Snapshot, container string) string {
	for _, pod := range s.Governed { // newest first
		seen := s.seenByAgent(pod, container)
		if seen == nil || seen.High == nil {
			continue
		}
		high := amount(*seen.High)
		frozen := inject.OfRunning(pod, s.Profile, nil).Container(container).StartHeapCap()
		heap := cmp.Or(frozen.Cap, inject.HeapCap(pod, container))
		if heap <= high {
			continue
		}
		return fmt.Sprintf("pod %s: the heap may grow to %s, but the kernel throttles the container above %s "+
			"(memory.high, which the kubelet's MemoryQoS feature sets between request and limit): raise the request, or "+
			"lower heapPercent", pod.Name, heap, high)
	}
	return ""
}

// UsageHelp names the section of the documentation about missing usage.
const UsageHelp = `what to do: docs/guide/troubleshooting.md, "Usage cannot be read"`

// whyNoUsage returns why samples of a workload are missing and what to do; empty: all of its nodes report usage.
func whyNoUsage(s *Snapshot) string {
	if s.Unmeasured {
		return "memfit runs with --usage-interval=0 and reads no usage: only OOM kills change a size"
	}
	nodes, _ := silentNodes(s)
	if len(nodes) == 0 {
		return ""
	}
	return "usage cannot be read from " + format.SilentNodes(nodes) + " (" + UsageHelp + ")"
}

// hasNoUsage reports whether memfit reads no usage of any pod of the workload.
func hasNoUsage(s *Snapshot) bool {
	_, all := silentNodes(s)
	return s.Unmeasured || all
}

// silentNodes returns the workload's nodes without usage. all is true if the workload has no other nodes.
func silentNodes(s *Snapshot) (nodes []memory.Silence, all bool) {
	if len(s.SilentNodes) == 0 {
		return nil, false
	}
	ours := map[string]bool{}
	for _, pod := range s.Governed {
		if pod.Spec.NodeName != "" {
			ours[pod.Spec.NodeName] = true
		}
	}
	nodes = slices.DeleteFunc(slices.Clone(s.SilentNodes), func(n memory.Silence) bool { return !ours[n.Node] })
	return nodes, len(nodes) > 0 && len(nodes) == len(ours)
}

// unseenFor is how long a running container may have no readings: more than three of the slowest intervals, plus the
// delay of a node's clock.
const unseenFor = 15 * time.Minute

// unreadUsage describes one ready pod for each container name whose usage has not been read for unseenFor. The usage of
// the other replicas does not show what this container needs.
func (st *State) unreadUsage(s *Snapshot, now time.Time) map[string]string {
	all := map[string]string{}
	if s.Unmeasured {
		return all
	}
	for _, pod := range slices.Backward(s.Governed) {
		if !available(pod) {
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
					all[c.Name] = fmt.Sprintf("usage of container %s in pod %s on node %s has not been read since %s", c.Name,
						pod.Name, pod.Spec.NodeName, format.Time(last))
				}
			}
		}
	}
	return all
}

const (
	// fewRestarts is the least number of restarts to report: a probe may cause one or two.
	fewRestarts = 3
	// linesKept and maxLastLines bound the quoted lines of a termination message and their bytes.
	linesKept, maxLastLines = 2, 256
	maxVolumes              = 8

	exitBus         = 135 // SIGBUS, for example after access to a page of a full tmpfs
	reasonOOMKilled = "OOMKilled"
	reasonLost      = "ContainerStatusUnknown"
)

// unexplainedRestarts returns the restarts of a container in governed pods without a recorded kill; nil: fewer than
// [fewRestarts], or the last one is older than the window.
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
		if oom.RestartsOnResize(spec) { // each resize increases the generation
			restarts = max(restarts-max(pod.Generation-1, 0), 0)
		}
		all += restarts
		ended := slices.DeleteFunc(slices.Clone(kills), func(k memory.OOMKill) bool {
			return k.Container.UID != pod.UID || k.Kind == memory.OOMChildProcess
		})
		explained += int64(len(ended))
		t := lastEnd(status)
		isLast := func(k memory.OOMKill) bool { return k.Time.Equal(t.FinishedAt.UTC().Truncate(time.Second)) }
		if t != nil && !slices.ContainsFunc(ended, isLast) && (last == nil || last.FinishedAt.Before(&t.FinishedAt)) {
			last, in = t, pod
		}
	}
	if total := l.Total(container); total > int64(len(kills)) { // the ledger dropped details of some kills
		explained = total
	}
	if last == nil || all-explained < fewRestarts || now.Sub(last.FinishedAt.Time) > recentWindow(s) {
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

// lastEnd returns the last end of a container; nil: it has not ended, was OOM-killed, or its status was lost.
func lastEnd(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	t := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if t == nil || t.Reason == reasonOOMKilled || t.Reason == reasonLost {
		return nil
	}
	return t
}

// lastLines returns the last non-empty lines of a termination message on one line.
func lastLines(message string) string {
	const tail = 4 * maxLastLines // bytes
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

// restartsSentence returns "container app restarted 26 times, cause unknown: last exit 1 in pod web-0 at ...", followed
// by what to do, in at most 400 characters.
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
		text += fmt.Sprintf("; the limit was raised in place, but %s the original size: %s, or set emptyDir.sizeLimit",
			volumesKeep(u.MemoryVolumes), deletePodHint(s, u.Pod))
	case len(u.MemoryVolumes) > 0:
		text += fmt.Sprintf("; %s files across restarts: when full, %s, or set a larger emptyDir.sizeLimit",
			volumesKeep(u.MemoryVolumes), deletePodHint(s, u.Pod))
	}
	return text
}

func volumesKeep(names []string) string {
	if len(names) == 1 {
		return "memory-backed volume " + names[0] + " keeps"
	}
	return fmt.Sprintf("memory-backed volumes %s and %d more keep", names[0], len(names)-1)
}

func deletePodHint(s *Snapshot, pod string) string {
	return fmt.Sprintf("delete the pod (kubectl delete pod %s -n %s)", pod, s.Owner.Ref.Namespace)
}

// reportRestarts sets the unexplained restarts in the status. It adds advisories about them and about outgrown volumes.
func (d *decider) reportRestarts() {
	v := &d.out
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
	if v.outgrownVolume = outgrownVolume(d.s); v.outgrownVolume != "" && !resized {
		texts = append(texts, sentenceCase(v.outgrownVolume))
	}
	v.status.Advisories = append(texts, v.status.Advisories...)
}

// outgrownVolume describes a pod whose limit was raised in place, but not its memory-backed volume; empty: none.
func outgrownVolume(s *Snapshot) string {
	for _, p := range s.Governed {
		for c := range constraints.Containers(&p.Spec) {
			volumes := inject.MemoryVolumes(p, c)
			n := slices.IndexFunc(volumes, func(v inject.MemoryVolume) bool { return v.SizeLimit == 0 })
			if n >= 0 && inject.RaisedInPlace(p, s.Profile, c.Name) {
				return fmt.Sprintf("the limit of pod %s was raised in place, but %s the original size: if the volume needs more, "+
					"%s, or set emptyDir.sizeLimit", p.Name, volumesKeep([]string{volumes[n].Name}), deletePodHint(s, p.Name))
			}
		}
	}
	return ""
}

// withProblems adds unexplained restarts and outgrown volumes to a True Applied condition, which may become False.
func withProblems(c metav1.Condition, s *Snapshot, v *result) metav1.Condition {
	if c.Status != metav1.ConditionTrue {
		return c
	}
	switch r := v.firstRestarting(); {
	case r != nil && r.UnexplainedRestarts.Resized:
		why := sentenceCase(restartsSentence(s, r.Container, r.UnexplainedRestarts))
		return conditionApplied.False(v1alpha1.ReasonVolumeKeepsSize, why)
	case r != nil:
		c.Message += "; " + restartsSentence(s, r.Container, r.UnexplainedRestarts)
	case v.outgrownVolume != "":
		c.Message += "; " + v.outgrownVolume
	}
	return c
}

// firstRestarting returns the first container with unexplained restarts; nil: none.
func (v *result) firstRestarting() *v1alpha1.ContainerRecommendation {
	for i := range v.status.Containers {
		if c := &v.status.Containers[i]; c.UnexplainedRestarts != nil {
			return c
		}
	}
	return nil
}

func sentenceCase(clause string) string { return strings.ToUpper(clause[:1]) + clause[1:] }

// recentWindow returns the age up to which conditions report kills, stalls and restarts.
func recentWindow(s *Snapshot) time.Duration { return s.Profile.Drift().Window.Duration }

// withRestarts returns the OOMObserved condition, with the first unexplained restarts if there were no kills.
func withRestarts(c metav1.Condition, s *Snapshot, v *result) metav1.Condition {
	if r := v.firstRestarting(); r != nil && c.Status == metav1.ConditionFalse {
		c.Message += "; " + restartsSentence(s, r.Container, r.UnexplainedRestarts)
	}
	return c
}
