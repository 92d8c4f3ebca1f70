// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/memfit/memfit/internal/maintenance"
	"github.com/memfit/memfit/test/budget"
)

func window(t *testing.T, schedule string, duration time.Duration, zone string) maintenance.Window {
	t.Helper()
	w, err := maintenance.Parse(schedule, duration, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpen(t *testing.T) {
	nightly := window(t, "0 2 * * 1-5", 3*time.Hour, "")
	berlin := window(t, "30 2 * * *", time.Hour, "Europe/Berlin")
	weekend := window(t, "0 22 * * 5", 50*time.Hour, "")
	tests := []struct {
		name    string
		windows maintenance.Windows
		now     string
		open    bool
		next    string
	}{
		{"no window is always open", nil, "2026-11-23T12:00:00Z", true, ""},
		{"just before", maintenance.Windows{nightly}, "2026-11-23T01:59:59Z", false, "2026-11-23T02:00:00Z"},
		{"as it opens", maintenance.Windows{nightly}, "2026-11-23T02:00:00Z", true, ""},
		{"its last second", maintenance.Windows{nightly}, "2026-11-23T04:59:59Z", true, ""},
		{"as it closes", maintenance.Windows{nightly}, "2026-11-23T05:00:00Z", false, "2026-11-24T02:00:00Z"},
		{"not on weekends", maintenance.Windows{nightly}, "2026-11-28T03:00:00Z", false, "2026-11-30T02:00:00Z"},
		{"one of two", maintenance.Windows{nightly, weekend}, "2026-11-28T03:00:00Z", true, ""},
		{"the sooner of two", maintenance.Windows{nightly, weekend}, "2026-11-27T06:00:00Z", false, "2026-11-27T22:00:00Z"},
		{"over midnight and two days", maintenance.Windows{weekend}, "2026-11-29T23:59:00Z", true, ""},
		{"winter in Berlin", maintenance.Windows{berlin}, "2026-11-23T01:30:00Z", true, ""},
		{"summer in Berlin", maintenance.Windows{berlin}, "2026-07-01T01:30:00Z", false, "2026-07-02T00:30:00Z"},
		// On 2026-03-29 there is no 02:30 in Berlin, and so no window, as with a CronJob.
		{"an hour that does not exist", maintenance.Windows{berlin}, "2026-03-28T23:50:00Z", false, "2026-03-30T00:30:00Z"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			open, next := tc.windows.Open(at(t, tc.now))
			if open != tc.open {
				t.Errorf("open = %v, want %v", open, tc.open)
			}
			if tc.next == "" != next.IsZero() || tc.next != "" && !next.Equal(at(t, tc.next)) {
				t.Errorf("next = %s, want %q", next, tc.next)
			}
		})
	}
}

// Errors name the field and how it is written.
func TestParseRefuses(t *testing.T) {
	tests := []struct {
		schedule string
		duration time.Duration
		zone     string
		want     []string
	}{
		{"0 2 * *", time.Hour, "", []string{"schedule", `"0 2 * *"`, "0 2 * * 1-5"}},
		{"0 25 * * *", time.Hour, "", []string{"schedule", "25"}},
		{"@every 1h", time.Hour, "", []string{"schedule", "@every"}},
		{"CRON_TZ=Europe/Berlin 0 2 * * *", time.Hour, "", []string{"schedule", "timeZone"}},
		{"0 0 30 2 *", time.Hour, "", []string{"schedule", "never"}},
		{"0 2 * * *", 59 * time.Second, "", []string{"duration", "59s", "1m"}},
		{"0 2 * * *", 200 * time.Hour, "", []string{"duration", "168h"}},
		{"0 2 * * *", time.Hour, "Berlin", []string{"timeZone", `"Berlin"`, "Europe/Berlin"}},
		{"0 2 * * *", time.Hour, "Local", []string{"timeZone", `"Local"`}},
		{"0 2 * * *", time.Hour, "../../etc/passwd", []string{"timeZone"}},
	}
	for _, tc := range tests {
		_, err := maintenance.Parse(tc.schedule, tc.duration, tc.zone)
		if err == nil {
			t.Errorf("Parse(%q, %s, %q) takes it", tc.schedule, tc.duration, tc.zone)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Parse(%q, %s, %q) = %q, which does not name %q", tc.schedule, tc.duration, tc.zone, err, want)
			}
		}
	}
}

// FuzzParse: whatever the text, reading it and asking it ends, and what is open now was opened before.
func FuzzParse(f *testing.F) {
	f.Add("0 2 * * 1-5", int64(3*time.Hour), "Europe/Berlin", int64(1_795_000_000))
	f.Add("*/7 0-23/2 29 2 *", int64(time.Minute), "", int64(1_700_000_000))
	f.Add("@weekly", int64(167*time.Hour), "America/St_Johns", int64(1_710_000_000))
	check(f, "0 2 * * *", int64(time.Hour), "Europe/Berlin", 0) // what is read once per process is no part of the budget
	f.Fuzz(func(t *testing.T, schedule string, duration int64, zone string, seconds int64) {
		if len(schedule) > 64 || len(zone) > 64 {
			return // says the API server
		}
		budget.Check(t, windowBudget, len(schedule)+len(zone), func() { check(t, schedule, duration, zone, seconds) })
	})
}

// windowBudget is for reading one window and asking it three times. A zone of the machine is some 2 KiB, read into 20.
var windowBudget = budget.Budget{Bytes: 128 << 10, PerByte: 64, CPU: time.Second}

func check(t testing.TB, schedule string, duration int64, zone string, seconds int64) {
	t.Helper()
	w, err := maintenance.Parse(schedule, time.Duration(duration), zone)
	if err != nil {
		return
	}
	now := time.Unix(seconds%4_000_000_000, 0)
	ws := maintenance.Windows{w}
	open, next := ws.Open(now)
	if open != next.IsZero() {
		t.Fatalf("%q at %s: open %v, next opening %s", schedule, now, open, next)
	}
	if open {
		return
	}
	if !next.After(now) {
		t.Fatalf("%q at %s opens in the past: %s", schedule, now, next)
	}
	if then, _ := ws.Open(next); !then {
		t.Fatalf("%q opens at %s, and is not open then", schedule, next)
	}
	if early, _ := ws.Open(next.Add(-time.Second)); early {
		t.Fatalf("%q opens at %s, and is open a second earlier", schedule, next)
	}
}
