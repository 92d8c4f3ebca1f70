// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

const (
	// startWindow is the longest uptime of a kill at start. A container that ran longer was measured, because the kubelet
	// measures every 10 s, and memfit reads at least every 60 s.
	startWindow = time.Minute
	// nearLimitPercent is the usage, in percent of the limit, from which a SIGKILL without a reason is suspected to be an
	// OOM kill. Below, other causes are more likely: a liveness probe, the grace period, a user.
	nearLimitPercent = 90
	// sureOfLimitPercent is the usage from which such a suspicion has medium confidence.
	sureOfLimitPercent = 97
	// podShareGapPercent is the usage, in percent of the container's limit, below which that limit did not cause a kill.
	podShareGapPercent = 90
	// wideGapPercent is the same for a kill during a debug session, which may be idle, or on a node that is short of
	// memory. It is lower, because a kill with these causes raises no limit. With the tests' usage of 150Mi and 240Mi of
	// 256Mi, results are equal from 59 to 93.
	wideGapPercent = 60
)

// Exit codes; 128+n is death by signal n. The codes for a full heap are in internal/runtimes.
const (
	exitKill = 137
	exitTerm = 143
)

const (
	reasonOOMKilled = "OOMKilled"
	reasonUnknown   = "ContainerStatusUnknown"
)

// death is one termination with the data to classify it.
type death struct {
	Termination
	class           Class
	measured        time.Time // start of memory readings; zero: none
	runtime         string
	heapCap         memory.Bytes // 0: unknown
	stopping        string       // why the pod was terminating at the end; empty: it was not
	limit, podLimit memory.Bytes // the effective limits; 0: none
	peak, podPeak   memory.Bytes // the highest demand of the container, and the sum of its pod's containers
	counted         bool         // the kernel's counter already showed kills in this instance
	neighbor        bool         // another container was killed at the pod's limit during this instance
	debugSession    string       // an ephemeral container at that time, in a pod whose cgroup has a limit; empty: none
	nodeShort       bool         // the node was short of memory
}

// verdict classifies a death. With an empty kind it is not an OOM kill.
type verdict struct {
	kind       memory.OOMKind
	confidence memory.Confidence
	why        string
}

// noOOM is the verdict for an end that is not an OOM kill.
var noOOM = verdict{}

// rules are tried in this order; the first matching rule decides. docs/design/ledger.md has a row for each rule.
var rules = []func(death) (verdict, bool){
	endUnknown,      // the kubelet does not know the exit code
	heapLogged,      // the runtime logged a full heap
	killedByKernel,  // OOMKilled, 137: the ordinary case
	childWasKilled,  // OOMKilled with another exit code: the counter is cumulative
	heapExit,        // 134, 133, 3: the runtime aborted
	heapFault,       // 139 of Node.js, 134 of Java and .NET: a full heap if usage was at the cap, else a bug
	killedOnPurpose, // 137 while the pod is terminating
	killedNearLimit, // 137 without a reason, close to the limit
}

func judge(d death) verdict {
	for _, rule := range rules {
		if v, known := rule(d); known {
			return v
		}
	}
	return noOOM
}

func (d death) uptime() time.Duration {
	if d.Started.IsZero() || d.Finished.Before(d.Started) {
		return 0
	}
	return d.Finished.Sub(d.Started)
}

// labeled reports whether the reason OOMKilled is about this container. On cgroup v1 a kill at the pod's limit is
// reported to every container of the pod, so containerd gives this reason to all of them when they end. After a kill of
// a neighbor, the reason counts only for a SIGKILL that no terminating pod explains.
func (d death) labeled() bool {
	return d.Reason == reasonOOMKilled && (!d.neighbor || d.sigkill() && d.stopping == "")
}

func (d death) sigkill() bool { return d.ExitCode == exitKill }

// facts returns the beginning of the explanation of a kill: "OOMKilled, exit 137, restart 4".
func (d death) facts() string {
	s := fmt.Sprintf("%s, exit %d, restart %d", reasonText(d.Reason), d.ExitCode, d.Index)
	if d.class != App {
		s += fmt.Sprintf(", %s container", map[Class]string{Init: "init", Sidecar: "native sidecar"}[d.class])
	}
	return s
}

// reasonText returns a reason of at most 40 letters unchanged, and quotes any other, because the node controls it.
func reasonText(reason string) string {
	if len(reason) <= 40 && !strings.ContainsFunc(
		reason, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) },
	) {
		return reason
	}
	return quote.Name(reason)
}

func endUnknown(d death) (verdict, bool) { return noOOM, d.Reason == reasonUnknown }

func heapLogged(d death) (verdict, bool) {
	terminated := d.stopping != "" && (d.ExitCode == exitTerm || d.sigkill())
	if d.HeapWords == "" || d.ExitCode == 0 || terminated || d.labeled() {
		return noOOM, false
	}
	return verdict{
		memory.OOMHeapAbort, memory.High, fmt.Sprintf("%s; termination message: %q", d.facts(), d.HeapWords),
	}, true
}

func killedByKernel(d death) (verdict, bool) {
	if !d.labeled() || !d.sigkill() {
		return noOOM, false
	}
	v := verdict{memory.OOMMainProcess, memory.High, d.facts()}
	started := !d.Started.IsZero() && !d.Finished.IsZero()
	switch {
	case d.counted && d.stopping != "": // the reason may be from a child's kill, and the SIGKILL from the grace period
		return noOOM, true
	case d.nodeRanOut():
		v.confidence = memory.Medium
		v.why += fmt.Sprintf("; seen at %s of its %s, while its node was short of memory (MemoryPressure)", d.peak, d.limit)
	case d.stopping != "":
		v.confidence = memory.Medium
		v.why += fmt.Sprintf(
			"; the pod was terminating (%s): the SIGKILL may end its grace period, with only a child OOM-killed",
			reasonText(d.stopping),
		)
	case d.hitPodLimit():
		v.kind = memory.OOMPodLimit
		v.why += d.podWhy()
		if d.limit != 0 {
			v.confidence = memory.Medium
		}
	case d.peak == 0 && started && d.uptime() <= startWindow:
		v.why += fmt.Sprintf("; killed %s after its start", format.Duration(d.uptime()))
		if d.measured.IsZero() || d.Started.Before(d.measured.Truncate(time.Second)) {
			v.why += ", while memfit had no measurements"
			break
		}
		v.kind = memory.OOMAtStart
		v.why += ", before memory was ever measured"
	}
	return v, true
}

// nodeRanOut reports whether the kill was probably for lack of memory on the node: the container was far below its
// limit. The kubelet also reports such kills as OOMKilled.
func (d death) nodeRanOut() bool {
	return d.nodeShort && d.peak > 0 && d.peak < d.limit.Percent(wideGapPercent) && !d.hitPodLimit()
}

// debugFilled reports whether a debug session probably used the rest of the limit: it ran in the pod, and the container
// was far below its limit.
func (d death) debugFilled() bool {
	return d.debugSession != "" && d.peak > 0 && d.peak < d.limit.Percent(wideGapPercent)
}

// hitPodLimit reports whether the kill was at the pod's limit: the container has no lower limit, a debug session filled
// the pod, or the container was far below its own limit while the whole pod was close to the pod's.
func (d death) hitPodLimit() bool {
	switch {
	case d.debugFilled():
		return true
	case d.podLimit == 0:
		return false
	case d.limit == 0 || d.limit >= d.podLimit:
		return true
	}
	return d.peak > 0 && d.peak < d.limit.Percent(podShareGapPercent) &&
		d.podPeak >= d.podLimit.Percent(podShareGapPercent)
}

func (d death) podWhy() string {
	if d.debugFilled() {
		return fmt.Sprintf("; seen at %s of its own %s, while the ephemeral container %s ran in its pod", d.peak, d.limit,
			quote.Name(d.debugSession))
	}
	if d.limit == 0 {
		return fmt.Sprintf("; the container has no limit of its own, the pod's is %s", d.podLimit)
	}
	if d.limit >= d.podLimit {
		return fmt.Sprintf("; the container's limit of %s is not below the pod's %s", d.limit, d.podLimit)
	}
	return fmt.Sprintf("; seen at %s of its own %s, while the pod's containers together were at %s of the pod's %s",
		d.peak, d.limit, d.podPeak, d.podLimit)
}

func childWasKilled(d death) (verdict, bool) {
	if !d.labeled() {
		return noOOM, false
	}
	if d.counted {
		return noOOM, true
	}
	why := d.facts() + "; the kubelet's label is cumulative: a child was killed earlier, the main process ended by " +
		"itself"
	if d.class == Init {
		why += " (the kubelet counts the init container as failed)"
	}
	return verdict{memory.OOMChildProcess, memory.High, why}, true
}

// abortsWhenFull returns the runtimes in which an abort means a full heap: "Node.js or Deno".
var abortsWhenFull = func() string {
	titles := runtimes.TitlesByExit(runtimes.Abort)
	last := len(titles) - 1
	return strings.Join(titles[:last], ", ") + " or " + titles[last]
}()

func heapExit(d death) (verdict, bool) {
	if d.NotHeap {
		return noOOM, false
	}
	switch full := runtimes.Lookup(d.runtime).FullHeap; {
	case slices.Contains(full.Exits, d.ExitCode):
		return verdict{
			memory.OOMHeapAbort, memory.Medium,
			fmt.Sprintf("%s; %s exits with this code when its heap is full", d.facts(), d.runtime),
		}, true
	case d.ExitCode == runtimes.Abort && (d.runtime == "" || d.runtime == "Auto"):
		return verdict{memory.OOMSuspected, memory.Low,
			fmt.Sprintf(
				"%s; an abort, which means a full heap in %s: declare the runtime in the profile", d.facts(), abortsWhenFull,
			)}, true
	}
	return noOOM, false
}

// heapFault classifies exit codes that usually mean a bug. If the usage was at the heap cap, a full heap is more
// likely; close to the limit the cause is only suspected.
func heapFault(d death) (verdict, bool) {
	r := runtimes.Lookup(d.runtime)
	if !slices.Contains(r.FullHeap.Faults, d.ExitCode) || d.stopping != "" || d.NotHeap {
		return noOOM, false
	}
	switch {
	case d.heapCap > 0 && d.peak >= d.heapCap:
		return verdict{memory.OOMHeapAbort, memory.Low,
			fmt.Sprintf("%s; seen at %s with a heap cap of %s, and %s may exit with this code when its heap is full",
				d.facts(), d.peak, d.heapCap, r.Title)}, true
	case d.limit > 0 && d.peak >= d.limit.Percent(nearLimitPercent):
		return verdict{memory.OOMSuspected, memory.Low,
			fmt.Sprintf("%s; it may be a full heap of %s or a bug: seen at %s of its %s", d.facts(), r.Title, d.peak,
				d.limit)}, true
	}
	return noOOM, false
}

func killedOnPurpose(d death) (verdict, bool) { return noOOM, d.sigkill() && d.stopping != "" }

func killedNearLimit(d death) (verdict, bool) {
	if !d.sigkill() || d.counted || d.limit == 0 || d.peak < d.limit.Percent(nearLimitPercent) {
		return noOOM, false
	}
	v := verdict{
		memory.OOMSuspected, memory.Low,
		fmt.Sprintf("%s without OOMKilled, but seen at %s of its %s", d.facts(), d.peak, d.limit),
	}
	if d.peak >= d.limit.Percent(sureOfLimitPercent) {
		v.confidence = memory.Medium
	}
	return v, true
}
