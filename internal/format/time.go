// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"time"
)

// Time is a point in time as messages show it, in UTC. What is stored is read later, so no message contains how long
// ago something was.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeOfDay is the same, without the date where that is within a day of now: "14:03:12Z".
func TimeOfDay(t, now time.Time) string {
	if now.Sub(t).Abs() >= 24*time.Hour {
		return Time(t)
	}
	return t.UTC().Format("15:04:05Z")
}

// Day is the day of a time, for the axis of a chart: "2 Jan".
func Day(t time.Time) string { return t.UTC().Format("2 Jan") }

// Hour is the same with weekday and hour: "Mon 15:00".
func Hour(t time.Time) string { return t.UTC().Format("Mon 15:00") }

// InWords is a duration as sentences show it, in its two largest units at most: "9 days", "1 day 4 h", "35 min". It is
// rounded to what a reader needs, so it is for spans and estimates. What is exact, a setting or how long a container
// was up, is written as [Duration] writes it. Messages use no other form.
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

// Short is a duration as a sentence about a second needs it: 250ms, 12s.
func Short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return Duration(d.Round(time.Second))
}
