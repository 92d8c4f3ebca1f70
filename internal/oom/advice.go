// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"cmp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Advice is what helps against a kind of kill, for a runtime as v1alpha1 spells it (may be empty). Heap aborts get
// another answer than kernel kills: there the limit may be right. CapSetBy is which text sets the heap cap, as an
// instruction to change it (empty: unknown).
func Advice(kind memory.OOMKind, runtime, capSetBy string) string {
	switch kind {
	case memory.OOMMainProcess:
		return "the limit was reached: raise it, or find what holds the memory"
	case memory.OOMChildProcess:
		return "a child process was killed and the container lived on: give it less work at a time or run fewer children, " +
			"or raise the limit"
	case memory.OOMAtStart:
		return "starting takes more than the limit: raise the limit; memory use measured later says nothing about it"
	case memory.OOMPodLimit:
		return "the pod's limit was reached, not the container's: raise spec.resources.limits.memory, or lower the other " +
			"containers"
	case memory.OOMHeapAbort:
		return "the runtime's own heap cap was reached, not the limit: " + cmp.Or(capSetBy, runtimes.RaiseCap(runtime)) +
			"; raise the limit only if RSS is close to it"
	case memory.OOMStall:
		return "it stood still just below its limit: its anonymous memory leaves no room for its own program and files, " +
			"which are read from the " +
			"disk over and over. Raise the limit, or give its heap a lower cap"
	case memory.OOMSuspected:
		return "a SIGKILL or an abort nobody explained: look at the liveness probe and the logs before raising the limit"
	}
	return ""
}
