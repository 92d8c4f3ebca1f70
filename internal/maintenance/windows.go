// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance reports whether a maintenance window is open: the times in which the owner of a workload lets
// memfit lower, restart or evict running pods (sizing.disruption.windows). A window is a schedule in the five fields
// of a CronJob, a duration and a time zone.
//
// Pure: time is an argument. It uses the parser of CronJobs in Kubernetes. Time zones need a database: cmd/manager and
// cmd/kubectl-memfit link a copy.
package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of a window's duration. A shorter one may end before the next decision; a longer one is always open.
const (
	minDuration = time.Minute
	maxDuration = 7 * 24 * time.Hour
)

// Window opens at each time of a schedule and stays open for a duration. The zero Window never opens.
type Window struct {
	schedule cron.Schedule
	duration time.Duration
}

// Windows are open when one of them is. An empty list is always open.
type Windows []Window

// Parse reads a window: schedule in the five fields of a CronJob ("0 2 * * 1-5"), zone a name of the IANA time zone
// database; "" is UTC. The error has the problem and a correct example.
func Parse(schedule string, duration time.Duration, zone string) (Window, error) {
	switch {
	case strings.Contains(schedule, "TZ="):
		// the parser would accept it, but as in CronJobs there must be only one place for the time zone
		return Window{}, errors.New("schedule: must not contain a time zone: write timeZone: Europe/Berlin beside it")
	case strings.HasPrefix(strings.TrimSpace(schedule), "@every"):
		return Window{}, errors.New(`schedule: @every is not supported: write when a window opens, as in "0 2 * * 1-5"`)
	case duration < minDuration, duration > maxDuration:
		return Window{}, fmt.Errorf("duration: %s must be between 1m and 168h, for example 3h", duration)
	}
	location, err := locate(zone)
	if err != nil {
		return Window{}, fmt.Errorf(
			"timeZone: %q is not a time zone: use a name of the IANA database, for example Europe/Berlin", zone,
		)
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return Window{}, fmt.Errorf(
			`schedule: %q is not a CronJob's schedule, for example "0 2 * * 1-5" (%w)`, schedule, err,
		)
	}
	if fields, ok := parsed.(*cron.SpecSchedule); ok { // only @every is another one
		fields.Location = location
	}
	w := Window{schedule: parsed, duration: duration}
	// Any start of the search will do: it covers five years, including a leap year.
	if w.schedule.Next(time.Unix(0, 0)).IsZero() { // 30 February
		return Window{}, fmt.Errorf("schedule: %q matches no date, so the window would never open: correct it", schedule)
	}
	return w, nil
}

// located caches about 600 time zones: loading one takes longer than the rest of Parse.
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
		return nil, err //nolint:wrapcheck // the caller wraps it
	}
	located.Store(zone, location)
	return location, nil
}

// Open reports whether a window is open at now and, if not, when the next one opens; zero: never. A window is open from
// the time of its schedule until just before its duration is over.
func (ws Windows) Open(now time.Time) (open bool, next time.Time) {
	if len(ws) == 0 {
		return true, time.Time{}
	}
	for _, w := range ws {
		if w.schedule == nil {
			continue
		}
		opening := w.schedule.Next(now.Add(-w.duration)).UTC() // the first that would still be open
		switch {
		case opening.IsZero():
		case !opening.After(now):
			return true, time.Time{}
		case next.IsZero() || opening.Before(next):
			next = opening
		}
	}
	return false, next
}
