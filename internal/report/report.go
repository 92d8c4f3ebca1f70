// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the sentences that users read about OOM kills and stalls, in Events, conditions and
// recommendations: what happened, then the numbers, then what to do. It decides nothing, and no code parses its
// sentences (test/sentences).
package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Kill describes a kill in one line: "Container app was OOM-killed at its limit of 256Mi (peak demand 251Mi,
// up 4m10s): OOMKilled, exit 137, restart 4".
func Kill(k *memory.OOMKill) string {
	s := "Container " + k.Container.Container + " " + KillVerb(k)
	var facts []string
	if k.Peak > 0 {
		facts = append(facts, "peak demand "+k.Peak.String())
	}
	if k.Uptime > 0 {
		facts = append(facts, "up "+format.Duration(k.Uptime))
	}
	if len(facts) > 0 {
		s += " (" + strings.Join(facts, ", ") + ")"
	}
	if k.Why != "" {
		s += ": " + k.Why
	}
	if k.Account != "" {
		s += "; " + k.Account
	}
	return s
}

// KillVerb returns what happened to the killed container: "was OOM-killed at its limit of 256Mi".
func KillVerb(k *memory.OOMKill) string {
	at := ""
	if k.Limit > 0 {
		at = " at its limit of " + k.Limit.String()
	}
	if k.Requested > 0 {
		at += " (a limit of " + k.Requested.String() + " was requested, but was not effective)"
	}
	switch k.Kind {
	case memory.OOMChildProcess:
		return "lost a child process to the OOM killer" + at
	case memory.OOMAtStart:
		return "was OOM-killed while starting" + at
	case memory.OOMHeapAbort:
		at = ""
		if k.Limit > 0 {
			at = " (the limit is " + k.Limit.String() + ")"
		}
		return "exited because its heap reached the runtime's heap cap" + at
	case memory.OOMPodLimit:
		return "was OOM-killed at the pod's limit"
	case memory.OOMSuspected:
		return "was probably OOM-killed" + at
	default:
		return "was OOM-killed" + at
	}
}

// Stall describes a stall in one line: "Container app has been stalled at its limit of 256Mi since 08:20:13Z: 235Mi
// ...".
func Stall(s *memory.Stall) string {
	head := fmt.Sprintf(
		"Container %s has been stalled at its limit of %s since %s", s.Container.Container, s.Limit, format.Time(s.Since),
	)
	if !s.Ended.IsZero() {
		head = fmt.Sprintf("Container %s stalled at its limit of %s from %s to %s",
			s.Container.Container, s.Limit, format.Time(s.Since), format.Time(s.Ended))
	}
	text := head + ": " + s.Why()
	switch {
	case s.NotRelieved && s.Faults == 0:
		text += fmt.Sprintf("; raising the limit from %s to %s did not reduce memory pressure: memory is not the "+
			"bottleneck", s.Limit, s.RaisedTo)
	case s.NotRelieved:
		text += fmt.Sprintf("; raising the limit from %s to %s did not reduce major faults (%d a second before, %d after): "+
			"memory is not the bottleneck",
			s.Limit, s.RaisedTo, s.Faults, s.FaultsAfter)
	case s.RaisedTo > 0 && !s.Ended.IsZero():
		text += fmt.Sprintf("; it ended after the limit was raised to %s (%d major faults a second since then)",
			s.RaisedTo, s.FaultsAfter)
	case s.RaisedTo > 0:
		text += "; the limit was raised to " + s.RaisedTo.String()
	}
	if s.Account != "" {
		text += "; " + s.Account
	}
	return text
}

// NodeRanOut is the advice about a kill on a node that had run out of memory.
const NodeRanOut = "its node ran out of memory, and the container did not reach its limit: raise the request, so " +
	"that the scheduler reserves the memory in use, or find what fills the node"

// Advice returns what to do about a kind of kill. runtime is a name of v1alpha1, or empty. capSetBy says how to raise
// the heap cap where it is set, for example in an environment variable; empty: it is unknown where.
func Advice(kind memory.OOMKind, runtime, capSetBy string) string {
	switch kind {
	case memory.OOMMainProcess:
		return "the limit was reached: raise it, or find what holds the memory"
	case memory.OOMChildProcess:
		return "a child process was killed and the container kept running: give it less work at a time, run fewer " +
			"children, or raise the limit"
	case memory.OOMAtStart:
		return "starting takes more than the limit: raise the limit; usage measured later does not include the start"
	case memory.OOMPodLimit:
		return "the pod's limit was reached, not the container's: raise spec.resources.limits.memory, or reduce the use of " +
			"the other containers and of debug sessions (kubectl debug)"
	case memory.OOMHeapAbort:
		return "the runtime's own heap cap was reached, not the limit: " + cmp.Or(capSetBy, runtimes.RaiseCap(runtime)) +
			"; raise the limit only if RSS is close to it"
	case memory.OOMStall:
		return "it stalled just below its limit: anonymous memory leaves too little page cache for its program and files, " +
			"which are read from disk again and again. Raise the limit, or lower its heap cap"
	case memory.OOMSuspected:
		return "an unexplained SIGKILL or abort: check the liveness probe and the logs before raising the limit"
	}
	return ""
}
