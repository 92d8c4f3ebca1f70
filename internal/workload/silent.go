// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// silence is why samples of a workload do not arrive, and what to do; "": all of its nodes answer.
func silence(s *Snapshot) string {
	if s.Unmeasured {
		return "memfit runs without a usage source (--usage-interval=0): only OOM kills change a size"
	}
	silent := silent(s)
	if len(silent) == 0 {
		return ""
	}
	return `usage cannot be read from ` + format.Silent(silent) +
		` (what to do: docs/guide/troubleshooting.md, "Usage cannot be read")`
}

// unmeasured reports whether usage is read of no pod of the workload, so that waiting alone brings no evidence.
func unmeasured(s *Snapshot) bool {
	if s.Unmeasured {
		return true
	}
	silent := silent(s)
	return len(silent) > 0 && len(silent) == len(nodesOf(s))
}

// silent are the nodes with pods of the workload from which usage cannot be read.
func silent(s *Snapshot) []memory.Silence {
	if len(s.Silent) == 0 {
		return nil
	}
	ours := nodesOf(s)
	return slices.DeleteFunc(slices.Clone(s.Silent), func(n memory.Silence) bool { return !ours[n.Node] })
}

// nodesOf are the nodes on which pods of the workload run.
func nodesOf(s *Snapshot) map[string]bool {
	nodes := map[string]bool{}
	for _, pod := range s.Governed {
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	return nodes
}
