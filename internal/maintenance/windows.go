// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance reports whether a maintenance window is open: the times in which the owner of a workload lets
// memfit lower, restart or evict running pods (sizing.disruption.windows). A window is a schedule in the five fields
// of a CronJob, a duration and a time zone.
//
// Pure: time is an argument. The schedule is read by the parser that Kubernetes uses for CronJobs. Names of time zones
// need the zones of the program or of the machine: cmd/manager and cmd/kubectl-memfit link their own copy.
package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of a window's duration. Shorter than a minute, the next decision about a workload may come after the window;
// longer than a week, a window of any schedule is always open.
const (
	MinDuration = time.Minute
	MaxDuration = 7 * 24 * time.Hour
)

// Window opens at each time of a schedule and stays open for a duration. The zero Window never opens.
type Window struct {
	schedule cron.Schedule
	duration time.Duration
}

// Windows are open when one of them is. No window at all is always open.
type Windows []Window

// Parse reads a window: schedule in the five fields of a CronJob ("0 2 * * 1-5"), zone a name of the IANA time zone
// database; "" is UTC. The error states what is wrong and how it is written.
func Parse(schedule string, duration time.Duration, zone string) (Window, error) {
	switch {
	case strings.Contains(schedule, "TZ="):
		// the parser would take it, and Kubernetes refuses it in a CronJob for good reason: two places for one thing
		return Window{}, errors.New("schedule: a time zone does not belong into it: write timeZone: Europe/Berlin beside it")
	case strings.HasPrefix(strings.TrimSpace(schedule), "@every"):
		return Window{}, errors.New(`schedule: @every counts from nowhere: write when a window opens, as in "0 2 * * 1-5"`)
	case duration < MinDuration, duration > MaxDuration:
		return Window{}, fmt.Errorf("duration: %s must be between 1m and 168h, for example 3h", duration)
	}
	location, err := locate(zone)
	if err != nil {
		return Window{}, fmt.Errorf(
			"timeZone: %q is no time zone: name one of the IANA database, for example Europe/Berlin", zone,
		)
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return Window{}, fmt.Errorf(
			`schedule: %q is not in the form of a CronJob's, for example "0 2 * * 1-5" (%w)`, schedule, err,
		)
	}
	w := Window{schedule: inZone{parsed, location}, duration: duration}
	if w.schedule.Next(someDay).IsZero() { // 30 February
		return Window{}, fmt.Errorf("schedule: %q never comes, so that the window would never open", schedule)
	}
	return w, nil
}

// located are the zones that were asked for: reading one from the machine takes longer than all the rest of Parse, and
// every decision about a workload with windows calls it. There are some 600, since nothing else is kept.
var located sync.Map

func locate(zone string) (*time.Location, error) {
	if known, found := located.Load(zone); found {
		return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
	}
	if zone == "Local" {
		return nil, errors.New("the machine's own zone is not the same on every machine")
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds its own words
	}
	located.Store(zone, location)
	return location, nil
}

// someDay is where the search for the first opening begins; any would do, since the search goes on for five years, of
// which one is a leap year.
var someDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// inZone is a schedule whose times are read on the clocks of a zone, also where daylight saving time changes them.
type inZone struct {
	schedule cron.Schedule
	zone     *time.Location
}

func (s inZone) Next(after time.Time) time.Time { return s.schedule.Next(after.In(s.zone)) }

// Open reports whether a window is open at now, and where none is, when the next one opens; the zero time: none ever
// does. A window is open from the time of its schedule until just before its duration is over.
func (ws Windows) Open(now time.Time) (open bool, next time.Time) {
	if len(ws) == 0 {
		return true, time.Time{}
	}
	for _, w := range ws {
		if w.schedule == nil {
			continue
		}
		opening := w.schedule.Next(now.Add(-w.duration)) // the first one that would not have closed yet
		if !opening.IsZero() && !opening.After(now) {
			return true, time.Time{}
		}
		if !opening.IsZero() && (next.IsZero() || opening.Before(next)) {
			next = opening
		}
	}
	if next.IsZero() {
		return false, next
	}
	return false, next.UTC()
}
