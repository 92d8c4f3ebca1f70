// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Kill describes a kill in one line: "Container app was OOM killed at its limit of 256Mi (peak demand 251Mi,
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

// under is the limit that a heap cap was derived from.
func under(k *memory.OOMKill) string {
	if k.Limit == 0 {
		return ""
	}
	return " (heap cap, under a limit of " + k.Limit.String() + ")"
}

// KillVerb reports what happened to the container: "was OOM killed at its limit of 256Mi".
func KillVerb(k *memory.OOMKill) string {
	at := ""
	if k.Limit > 0 {
		at = " at its limit of " + k.Limit.String()
	}
	if k.Asked > 0 {
		at += " (a limit of " + k.Asked.String() + " was requested and not in effect)"
	}
	switch k.Kind {
	case memory.OOMChildProcess:
		return "lost a child process to the OOM killer" + at
	case memory.OOMAtStart:
		return "was OOM killed while starting" + at
	case memory.OOMHeapAbort:
		return "exited because its runtime's heap was full" + under(k)
	case memory.OOMPodLimit:
		return "was OOM killed at the pod's limit"
	case memory.OOMSuspected:
		return "was probably OOM killed" + at
	default:
		return "was OOM killed" + at
	}
}
