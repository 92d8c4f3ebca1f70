// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance reports whether a maintenance window (sizing.disruption.windows) is open. While one is open,
// memfit may restart or evict running pods and lower their limits. A window is a schedule in the five fields of a
// CronJob, a duration and a time zone.
//
// The package is pure: time is an argument. It parses schedules with the parser of Kubernetes CronJobs. Time zones need
// a database, of which cmd/manager and cmd/kubectl-memfit link a copy.
package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of a window's duration. A shorter window may end before memfit decides again; a longer one hardly ever closes.
const (
	minDuration = time.Minute
	maxDuration = 7 * 24 * time.Hour
)

// Window opens at each time of a schedule and stays open for a duration. The zero Window never opens.
type Window struct {
	schedule cron.Schedule
	duration time.Duration
}

// Windows is open while one of its windows is open. An empty list is always open.
type Windows []Window

// Parse returns a window. schedule has the five fields of a CronJob's schedule ("0 2 * * 1-5"). zone is a name of the
// IANA time zone database; "" is UTC. The error names the invalid field and contains a correct example.
func Parse(schedule string, duration time.Duration, zone string) (Window, error) {
	switch {
	case strings.Contains(schedule, "TZ="):
		// the parser would accept it, but as in a CronJob, only one field may set the time zone
		return Window{}, errors.New("schedule: must not contain a time zone: set timeZone, for example Europe/Berlin")
	case strings.HasPrefix(strings.TrimSpace(schedule), "@every"):
		return Window{}, errors.New(`schedule: @every is not supported: set the opening times, for example "0 2 * * 1-5"`)
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
	if fields, ok := parsed.(*cron.SpecSchedule); ok { // only @every has another type
		fields.Location = location
	}
	w := Window{schedule: parsed, duration: duration}
	// Next searches five years, one of them a leap year, so any start will do.
	if w.schedule.Next(time.Unix(0, 0)).IsZero() { // for example 30 February
		return Window{}, fmt.Errorf("schedule: %q matches no date, so the window would never open: correct it", schedule)
	}
	return w, nil
}

// located caches time zones by name, at most about 600: loading one takes longer than the rest of Parse.
var located sync.Map

func locate(zone string) (*time.Location, error) {
	if known, found := located.Load(zone); found {
		return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
	}
	if zone == "Local" {
		return nil, errors.New("the local time zone differs between machines")
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
		opening := w.schedule.Next(now.Add(-w.duration)).UTC() // the first whose window has not closed
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
