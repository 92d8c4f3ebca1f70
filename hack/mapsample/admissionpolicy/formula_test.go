// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpolicy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memfit/memfit/internal/memory"
)

func TestFit(t *testing.T) {
	percent := func(p int64) oracle {
		return func(l memory.Bytes) (string, bool) { return fmt.Sprint(int64(l) * p / 100), l >= 64*memory.MiB }
	}
	cases := map[string]struct {
		ask         oracle
		wantErr     string
		wantNothing bool
		wantPercent int64
		wantFrom    memory.Bytes
		wantSteps   int
	}{
		"never set": {ask: func(memory.Bytes) (string, bool) { return "", false }, wantNothing: true},
		"a constant": {
			ask: func(memory.Bytes) (string, bool) { return "-XX:TrimNativeHeapInterval=60000", true }, wantSteps: 1,
		},
		"two texts":      {ask: flags, wantSteps: 2},
		"a share":        {ask: percent(90), wantPercent: 90, wantFrom: 64 * memory.MiB, wantSteps: 1},
		"an odd share":   {ask: percent(33), wantPercent: 33, wantFrom: 64 * memory.MiB, wantSteps: 1},
		"the whole":      {ask: percent(100), wantPercent: 100, wantFrom: 64 * memory.MiB, wantSteps: 1},
		"MiB with steps": {ask: mebibytes, wantPercent: 75, wantFrom: 100*memory.MiB + 1, wantSteps: 2},
		"no formula": {ask: func(l memory.Bytes) (string, bool) {
			return fmt.Sprint(int64(l) / 1000 * int64(l) / 1000), l > 0
		}, wantErr: "no simple formula"},
		"two numbers change": {ask: func(l memory.Bytes) (string, bool) {
			return fmt.Sprintf("%d:%d", l/2, l/3), l > 0
		}, wantErr: "no simple formula"},
		"only without a limit": {
			ask: func(l memory.Bytes) (string, bool) { return "x", l == 0 }, wantErr: "without a limit only",
		},
		"not in the middle": {ask: func(l memory.Bytes) (string, bool) {
			return "2", l > 0 && (l < memory.GiB || l > 2*memory.GiB)
		}, wantErr: "no simple formula"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := fit(c.ask)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Fatalf("error %v, want one with %q", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.wantNothing != (f == nil) {
				t.Fatalf("formula %+v, want none: %t", f, c.wantNothing)
			}
			if want, set := c.ask(0); f != nil && (f.withoutLimit != set || set && f.unlimited != want) {
				t.Errorf("without a limit %q (%t), want %q (%t)", f.unlimited, f.withoutLimit, want, set)
			}
			if f != nil && (f.percent != c.wantPercent || f.from != c.wantFrom || len(f.steps) != c.wantSteps) {
				t.Errorf(
					"%d %% from %s in %d steps, want %d %% from %s in %d", f.percent, f.from, len(f.steps), c.wantPercent, c.wantFrom,
					c.wantSteps,
				)
			}
		})
	}
}

// flags returns JVM flags: an additional one for small containers, and another one without a limit.
func flags(l memory.Bytes) (string, bool) {
	if l < 256*memory.MiB {
		if l == 0 {
			return "-XX:+UseNothing", true
		}
		return "-XX:MaxRAMPercentage=60.0 -XX:MinRAMPercentage=60.0", true
	}
	return "-XX:MaxRAMPercentage=60.0", true
}

// mebibytes returns a flag in MiB with a step at 300Mi, for limits above 100Mi.
func mebibytes(l memory.Bytes) (string, bool) {
	less := int64(3)
	if l > 300*memory.MiB {
		less = 48
	}
	return fmt.Sprintf("--max-old-space-size=%d", int64(l)*75/100/int64(memory.MiB)-less), l > 100*memory.MiB
}
