// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// NodeRanOut is the advice about kills by a node without free memory.
const NodeRanOut = "its node ran out of memory, and the container reached no limit: raise the request, so that the " +
	"scheduler reserves what it uses, or find what fills the node"

// Advice returns what to do about a kind of kill, for a runtime in v1alpha1's spelling (may be empty). For heap aborts
// the limit may be right. capSetBy is the text that sets the heap cap, as an instruction (empty: unknown).
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
		return "the pod's limit was reached, not the container's: raise spec.resources.limits.memory, or lower the other " +
			"containers, debug sessions (kubectl debug) among them"
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
