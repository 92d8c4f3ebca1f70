// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"time"
)

// Time formats a time for messages, in UTC. Messages contain no relative times, because they are stored and read later.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeOfDay is Time without the date if it is within a day of now: "14:03:12Z".
func TimeOfDay(t, now time.Time) string {
	if now.Sub(t).Abs() >= 24*time.Hour {
		return Time(t)
	}
	return t.UTC().Format("15:04:05Z")
}

// Day formats the day of a time, for the axis of a chart: "2 Jan".
func Day(t time.Time) string { return t.UTC().Format("2 Jan") }

// Hour is Day with weekday and hour: "Mon 15:00".
func Hour(t time.Time) string { return t.UTC().Format("Mon 15:00") }

// InWords formats a duration for sentences, in at most two units: "9 days", "1 day 4 h", "35 min". It is rounded, for
// periods and estimates; [Duration] is for exact values, such as settings and uptimes. Messages use no other form.
func InWords(d time.Duration) string {
	d = max(d, 0)
	day := 24 * time.Hour
	switch {
	case d >= 3*day:
		return fmt.Sprintf("%d days", (d+day/2)/day)
	case d >= 2*day:
		return "2 days" + hoursMore(d-2*day)
	case d >= day:
		return "1 day" + hoursMore(d-day)
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

func hoursMore(rest time.Duration) string {
	if h := rest / time.Hour; h > 0 {
		return fmt.Sprintf(" %d h", h)
	}
	return ""
}

// Short formats a duration of about a second: 250ms, 12s.
func Short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return Duration(d.Round(time.Second))
}
