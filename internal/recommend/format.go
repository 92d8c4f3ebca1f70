// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

func sprintf(text string, args ...any) string { return fmt.Sprintf(text, args...) }

// at formats a time for messages: the time of day, with the date unless it is within a day of now.
func (e *evaluation) at(t time.Time) string { return format.TimeOfDay(t, e.Now) }

// otherCause describes a kill that a higher limit does not prevent.
func otherCause(k memory.OOMKill) string {
	switch {
	case k.Debugged:
		return "killed while a debug session filled its pod"
	case k.Kind == memory.OOMPodLimit:
		return "killed at the pod's own limit"
	}
	return "the runtime gave up at its own heap cap"
}

// inUseWords returns why a request is raised, with the time of the reading: "706Mi was in use at 14:03:12Z".
func (e *evaluation) inUseWords() string {
	return sprintf("%s was in use at %s", e.InUse, e.at(e.InUseSeen))
}

// orNone formats a size that may be missing: "none" for 0.
func orNone(b memory.Bytes) string {
	if b == 0 {
		return "none"
	}
	return b.String()
}

// basis returns the amount of evidence: "3 replicas, 41k samples".
func (e *evaluation) basis() string {
	return format.Count(int64(max(e.Replicas, 1)), "replica") + ", " + format.About(e.rec.Evidence.Samples, "sample")
}
