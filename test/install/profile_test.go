// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBadProfiles checks that the error for an invalid profile names the mistake and what to write instead.
func TestBadProfiles(t *testing.T) {
	c := apiServer(t)
	for spec, want := range map[string]string{
		`{selektor: {}}`:            `unknown field "spec.selektor"`,
		`{runtime: {type: Nodejs}}`: `spec.runtime.type: Unsupported value: "Nodejs": supported values: "Auto", "NodeJS", "JVM"`,
		`{runtime: {version: v20}}`: "without a leading v: for example 20 " +
			"or 17.0.9",
		`{runtime: {version: 20}}`: "spec.runtime.version in body must " +
			"be of type string",
		`{runtime: {variant: HotSpot}}`: "variant is only known for type JVM: " +
			"remove variant or set type: JVM",
		`{tuning: {mode: Auto}}`: `supported values: "Inject", "DryRun", "Disabled"`,
		`{sizing: {mode: Off}}`:  `must be of type string: "boolean", spec.sizing.mode: Unsupported value: false: supported values: "Disabled"`,
		`{tuning: {mode: Off}}`:  `Unsupported value: false: supported values: "Inject", "DryRun", "Disabled"`,
		`{tuning: {heapPercent: 5}}`: "spec.tuning.heapPercent in body " +
			"should be greater than or equal to 10",
		`{tuning: {heapPercent: 75%}}`: "spec.tuning.heapPercent in body " +
			"must be of type integer",
		`{tuning: {heapLimit: 256}}`: "heapLimit must be at least 16Mi: " +
			"write it with a unit, for example 256Mi",
		`{tuning: {heapLimit: "1e-999999999"}}`: "an exponent has at most two digits: " +
			"write it with a unit, for example 512Mi",
		`{tuning: {nodejs: {semiSpace: "1e-99999999"}}}`:                "an exponent has at most two digits",
		`{sizing: {limit: {min: "1e-999999999", max: "1E+999999999"}}}`: "an exponent has at most two digits",
		`{sizing: {oom: {minIncrease: "9E999999999"}}}`:                 "an exponent has at most two digits",
		`{tuning: {heapLimit: 256MB}}`:                                  "256MB is not a quantity: write for example 200Mi (mebibytes) or 200M (megabytes)",
		`{tuning: {reserve: 256}}`: "reserve must be at least 1Mi: " +
			"write it with a unit, for example 256Mi",
		`{tuning: {reserve: "1e-999999999"}}`: "an exponent has at most two digits",
		`{tuning: {processes: 0}}`:            "spec.tuning.processes in body should be greater than or equal to 1",
		`{tuning: {processes: 257}}`:          "spec.tuning.processes in body should be less than or equal to 256",
		`{tuning: {trimThreshold: 1Ki}}`: "trimThreshold must be between 64Ki " +
			"and 1Gi, for example 128Ki",
		`{tuning: {trimInterval: "30"}}`: "trimInterval must be 0s (off) or " +
			"between 1s and 1h, for example 30s",
		`{tuning: {trimInterval: 2h}}`: "trimInterval must be 0s (off) or " +
			"between 1s and 1h, for example 30s",
		`{tuning: {replace: [LD_PRELOAD]}}`: `Unsupported value: "LD_PRELOAD"`,
		`{tuning: {replace: [GOGC]}}`: "replace lists settings to " +
			"overwrite, which needs conflictPolicy: Replace",
		`{tuning: {heapPercent: 60, heapLimit: 256Mi}}`: "heapPercent and heapLimit both set " +
			"the managed heap: keep one of them",
		`{runtime: {type: JVM}, tuning: {heapLimit: 256Mi}}`:                         "heapLimit is not for type JVM",
		`{containers: [{name: a, runtime: {type: JVM}, tuning: {heapLimit: 64Mi}}]}`: "heapLimit is not for type JVM",
		`{tuning: {jvm: {g1PeriodicGCInterval: 1s}}}`: "g1PeriodicGCInterval must be " +
			"between 10s and 1h, for example 5m",
		`{tuning: {nodejs: {semiSpace: 200Mi}}}`: "semiSpace must be between 1Mi and " +
			"128Mi, for example 16Mi",
		`{tuning: {nodejs: {semiSpace: 16M}}}`:        "semiSpace must be whole MiB",
		`{role: Base}`:                                `supported values: "Profile", "Defaults"`,
		`{role: Defaults, selector: {}}`:              "selector and containers must not be set when role is Defaults",
		`{role: Defaults, containers: [{name: app}]}`: "selector and containers must not be set when role is Defaults",
		`{role: Defaults, runtime: {type: Go}}`:       "runtime must not be set when role is Defaults",
		`{role: Defaults, runtime: {version: "20"}}`:  "runtime must not be set when role is Defaults",
		`{role: Defaults, runtime: {libc: Musl}}`:     "runtime must not be set when role is Defaults",
		`{sizing: {increase: AfterKill}}`:             "increase: AfterKill needs decrease: Never",
		`{sizing: {mode: OnCreate, rescue: Enabled}}`: "rescue: Enabled needs mode: InPlace or InPlaceOrEvict",
		`{sizing: {rescue: Always}}`:                  `supported values: "Disabled", "Enabled"`,
		`{sizing: {mode: Auto}}`:                      `supported values: "Disabled", "Recommend", "OnCreate", "InPlace", "InPlaceOrEvict"`,
		`{sizing: {posture: Brave}}`:                  "posture must be Frugal, Balanced, Cautious, or the price of a kill between 1Gi and 1Ti, for example 20Gi",
		`{sizing: {posture: 512Mi}}`:                  "posture must be Frugal, Balanced, Cautious, or the price of a kill between 1Gi and 1Ti, for example 20Gi",
		`{sizing: {posture: 2Ti}}`:                    "posture must be Frugal, Balanced, Cautious, or the price of a kill between 1Gi and 1Ti, for example 20Gi",
		`{sizing: {posture: "1e999999999"}}`:          "posture must be Frugal, Balanced, Cautious, or the price of a kill between 1Gi and 1Ti, for example 20Gi",
		`{sizing: {headroomPercent: 300}}`:            "should be less than or equal to 200",
		`{sizing: {limit: {min: 64}}}`: "min is below 1Mi: write it with a " +
			"unit, for example 64Mi",
		`{sizing: {limit: {max: 512m}}}`: "max is below 1Mi: write it with a " +
			"unit, for example 4Gi",
		`{sizing: {limit: {min: 4Gi, max: 64Mi}}}`: "min must not be above max: swap " +
			"them or raise max",
		`{sizing: {request: {min: 2Gi}, limit: {max: 1Gi}}}`: "request.min must not be above " +
			"limit.max: no size could satisfy both",
		`{sizing: {disruption: {cooldown: -1h}}}`: "cooldown must be between 0s and 168h, for " +
			"example 1h",
		`{drift: {window: 5m}}`: "window must be between 1h and 168h, " +
			"for example 24h",
		`{containers: [{name: a}, {name: a}]}`: `spec.containers[1]: Duplicate value: {"name":"a"}`,
	} {
		if _, err := create(t.Context(), c, t, spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error\n  %v\nwant a refusal with\n  %s", spec, err, want)
		}
	}
}

func TestGoodProfiles(t *testing.T) {
	c := apiServer(t)
	for _, spec := range []string{
		`{}`,
		`{selector: {matchLabels: {app: web}}}`,
		`{selector: {}}`,
		`{runtime: {type: JVM, version: "17.0.9+11", variant: OpenJ9, libc: Musl}}`,
		`{runtime: {type: JVM, version: "8.0_402"}}`,
		`{tuning: {heapLimit: 1.5Gi}}`,
		`{sizing: {posture: Cautious}}`,
		`{sizing: {posture: 20Gi}}`,
		`{tuning: {heapLimit: 268435456}}`,
		`{tuning: {trimInterval: 0s, trimThreshold: 128Ki, arenaMax: 0}}`,
		`{containers: [{name: app, tuning: {processes: 4, reserve: 128Mi}}]}`,
		`{tuning: {conflictPolicy: Replace, replace: [GOMEMLIMIT, --max-old-space-size]}}`,
		`{containers: [{name: "*", mode: Ignored}, {name: app, tuning: {heapPercent: 60}, limit: {min: 64Mi, max: 64Mi}}]}`,
		`{role: Profile, selector: {}}`,
		`{role: Defaults}`,
		`{role: Defaults, runtime: {type: Auto, libc: Auto}, containers: []}`,
		`{role: Defaults, tuning: {arenaMax: 2}, sizing: {mode: OnCreate}, drift: {action: Restart}}`,
		`{sizing: {mode: OnCreate, limit: {max: 4Gi}, oom: {factorPercent: 200}, disruption: {cooldown: 30m}}, drift: {window: 168h}}`,
	} {
		if _, err := create(t.Context(), c, t, spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestDefaults checks the API server's defaults. Inheritable fields have none: a default would override a profile with
// role Defaults and, below spec.containers, the profile's own tuning.
func TestDefaults(t *testing.T) {
	profile, err := create(
		t.Context(), apiServer(t), t, `{tuning: {mode: DryRun}, containers: [{name: app, tuning: {heapPercent: 60}}]}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"containers": []any{
			map[string]any{"name": "app", "mode": "Managed", "tuning": map[string]any{"heapPercent": int64(60)}},
		},
		"drift":   map[string]any{},
		"runtime": map[string]any{"type": "Auto", "libc": "Auto"},
		"sizing":  map[string]any{},
		"tuning":  map[string]any{"mode": "DryRun"},
	}
	if diff := cmp.Diff(want, profile.Object["spec"]); diff != "" {
		t.Errorf("the stored spec (-want +got):\n%s", diff)
	}
}
