// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

func TestTexts(t *testing.T) {
	at := time.Date(2026, 3, 2, 14, 3, 12, 5e8, time.FixedZone("CET", 3600))
	const day = 24 * time.Hour
	for want, got := range map[string]string{
		"0 pods":                         Count(0, "pod"),
		"1 pod":                          Count(1, "pod"),
		"12345 pods":                     Count(int32(12345), "pod"),
		"412 samples":                    About(412, "sample"),
		"1 sample":                       About(1, "sample"),
		"41k samples":                    About(40_600, "sample"),
		"3.2M samples":                   About(3_200_000, "sample"),
		"41M samples":                    About(41_200_000, "sample"),
		"1 of 3 pods":                    OfPods(1, 3),
		"45s":                            Duration(45 * time.Second),
		"12m":                            Duration(12 * time.Minute),
		"12m5s":                          Duration(12*time.Minute + 5*time.Second),
		"3h20m":                          Duration(3*time.Hour + 20*time.Minute),
		"47h":                            Duration(47 * time.Hour),
		"9d4h":                           Duration(9*day + 4*time.Hour),
		"250ms":                          Short(251 * time.Millisecond),
		"12s":                            Short(12400 * time.Millisecond),
		"0 s":                            InWords(-time.Second),
		"35 min":                         InWords(35*time.Minute + 40*time.Second),
		"1 h 5 min":                      InWords(time.Hour + 5*time.Minute),
		"12 h":                           InWords(11*time.Hour + 40*time.Minute),
		"1 day 4 h":                      InWords(day + 4*time.Hour),
		"2 days":                         InWords(2*day + 10*time.Minute),
		"9 days":                         InWords(9*day + 4*time.Hour),
		"2026-03-02T13:03:12Z":           Time(at),
		"13:03:12Z":                      TimeOfDay(at, at.Add(23*time.Hour)),
		"yesterday 2026-03-02T13:03:12Z": "yesterday " + TimeOfDay(at, at.Add(day)),
		"100Mi":                          Quantity(99*memory.MiB + 1).String(),
		"103809025":                      Exact(99*memory.MiB + 1).String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Quantity(0) != nil || Exact(-1) != nil {
		t.Error("nothing is an amount")
	}
}
