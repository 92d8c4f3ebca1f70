// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// at is a time of day as messages say it, with its date where that was not within the last day. What is stored is read later, so nothing
// in it is told by how long ago it was.
func (e *evaluation) at(t time.Time) string { return at(t, e.Now) }

func at(t, now time.Time) string {
	if now.Sub(t).Abs() >= 24*time.Hour {
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format("15:04:05Z")
}

// unhelpedBy is how a death is told that a higher limit does not help against.
func unhelpedBy(kind memory.OOMKind) string {
	if kind == memory.OOMPodLimit {
		return "killed at the pod's own limit"
	}
	return "the runtime gave up at its own heap cap"
}

// inUseWords says why a request is raised: "706Mi was in use at 14:03:12Z".
func (e *evaluation) inUseWords() string { return sprintf("%s was in use at %s", e.InUse, e.at(e.Now)) }

// orNone is a size as people say it, for sizes that may be missing.
func orNone(b memory.Bytes) string {
	if b == 0 {
		return "none"
	}
	return b.String()
}

// plural is a count with its noun: "1 kill", "3 kills".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// ago is a duration as people say it, in its two largest units at most: "9 days", "1 day 4 h", "35 min".
func ago(d time.Duration) string {
	d = max(d, 0)
	day := 24 * time.Hour
	switch {
	case d >= 3*day:
		return fmt.Sprintf("%d days", (d+day/2)/day)
	case d >= 2*day:
		return "2 days" + more(d-2*day)
	case d >= day:
		return "1 day" + more(d-day)
	case d >= 10*time.Hour:
		return fmt.Sprintf("%d h", (d+time.Hour/2)/time.Hour)
	case d >= time.Hour:
		if m := d % time.Hour / time.Minute; m > 0 {
			return fmt.Sprintf("%d h %d min", d/time.Hour, m)
		}
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func more(rest time.Duration) string {
	if h := rest / time.Hour; h > 0 {
		return fmt.Sprintf(" %d h", h)
	}
	return ""
}

// count is a number of things as people say it: "412", "41k", "3.2M".
func count(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%dk", (n+500)/1000)
	}
	return fmt.Sprint(n)
}

// looks is what the evidence rests on: "3 replicas, 41k samples".
func (e *evaluation) looks() string {
	ev := e.rec.Evidence
	return plural(int64(max(ev.Replicas, 1)), "replica") + ", " + plural(ev.Samples, "sample")
}

// Ago is a duration as memfit's messages say it: "9 days", "1 day 4 h", "35 min", "12 s".
func Ago(d time.Duration) string { return ago(d) }
