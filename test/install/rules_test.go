// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/test/tree"
)

// celBudget is the API server's CEL cost limit for one object.
const celBudget = 10_000_000

// rules returns the schema of MemoryProfiles and the API server's validator of their CEL rules.
func rules(t *testing.T) (*structural.Structural, *cel.Validator) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree.Root(), "config", "crd", "bases", "memfit.dev_memoryprofiles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &v1); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var crd apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		&v1, &crd, nil,
	); err != nil {
		t.Fatal(err)
	}
	crd.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
	// This also checks the estimated maximum cost of the rules.
	if errs := validation.ValidateCustomResourceDefinition(t.Context(), &crd); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	schema := crd.Spec.Validation
	if schema == nil {
		schema = crd.Spec.Versions[0].Schema
	}
	s, err := structural.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return s, cel.NewValidator(s, true, celBudget)
}

// TestRulesNameTheFix checks that an invalid value gets exactly one error, which has what to write instead.
func TestRulesNameTheFix(t *testing.T) {
	s, v := rules(t)
	const quantity = " is not a quantity: write for example 200Mi (mebibytes) or 200M (megabytes)"
	const exponent = "an exponent has at most two digits: write it with a unit, for example 512Mi"
	const name = " is not a container name: it has lower-case letters, digits and hyphens; or write * for all others"
	const maxUnavailable = "maxUnavailable must be at least 1, or a share of the replicas between 1% and 100%, " +
		"for example 25%"
	const schedule = "schedule has the five fields of a CronJob's schedule, for example 0 2 * * 1-5, and no time zone: " +
		"set timeZone"
	const duration = "duration must be between 1m and 168h, for example 3h"
	const zone = "timeZone is a name of the IANA time zone database, for example Europe/Berlin"
	for spec, want := range map[string]string{
		`{sizing: {limit: {max: 200MB}}}`:                    "200MB" + quantity,
		`{sizing: {limit: {min: 64Mi, max: 200 MiB}}}`:       "200 MiB" + quantity,
		`{sizing: {request: {min: 1GB}, limit: {max: 2Gi}}}`: "1GB" + quantity,
		`{sizing: {oom: {minIncrease: 64mb}}}`:               "64mb" + quantity,
		`{tuning: {heapLimit: 256MB}}`:                       "256MB" + quantity,
		`{tuning: {reserve: a lot}}`:                         "a lot" + quantity,
		`{tuning: {trimThreshold: 128KB}}`:                   "128KB" + quantity,
		`{tuning: {nodejs: {semiSpace: 16MB}}}`:              "16MB" + quantity,
		`{containers: [{name: app, limit: {max: 1GB}}]}`:     "1GB" + quantity,
		`{sizing: {limit: {max: "1e-999999999"}}}`:           exponent,
		`{sizing: {limit: {max: 512m}}}`:                     "max is below 1Mi: write it with a unit, for example 4Gi",
		`{containers: [{name: App_X}]}`:                      "App_X" + name,
		`{containers: [{name: app-}]}`:                       "app-" + name,
		`{sizing: {disruption: {watch: 99999h}}}`:            "watch must be between 10s and 168h, for example 10m",
		`{sizing: {disruption: {watch: 1 day}}}`:             "watch must be between 10s and 168h, for example 10m",
		`{sizing: {disruption: {watch: 1s}}}`:                "watch must be between 10s and 168h, for example 10m",
		`{sizing: {disruption: {cooldown: 99999h}}}`:         "cooldown must be between 0s and 168h, for example 1h",
		`{sizing: {disruption: {cooldown: -1h}}}`:            "cooldown must be between 0s and 168h, for example 1h",
		`{drift: {window: 1d}}`:                              "window must be between 1h and 168h, for example 24h",
		`{tuning: {trimInterval: 30}}`:                       "trimInterval must be 0s (off) or between 1s and 1h, for example 30s",
		`{tuning: {jvm: {g1PeriodicGCInterval: soon}}}`:      "g1PeriodicGCInterval must be between 10s and 1h, for example 5m",

		`{sizing: {disruption: {windows: [{schedule: "0 2 * * *", duration: 200h}]}}}`:                duration,
		`{sizing: {disruption: {maxUnavailable: 0}}}`:                                                 maxUnavailable,
		`{sizing: {disruption: {maxUnavailable: "25"}}}`:                                              maxUnavailable,
		`{sizing: {disruption: {maxUnavailable: 0%}}}`:                                                maxUnavailable,
		`{sizing: {disruption: {maxUnavailable: 101%}}}`:                                              maxUnavailable,
		`{sizing: {disruption: {windows: [{schedule: at night, duration: 1h}]}}}`:                     schedule,
		`{sizing: {disruption: {windows: [{schedule: "@every 1h", duration: 1h}]}}}`:                  schedule,
		`{sizing: {disruption: {windows: [{schedule: "0 2 * *", duration: 1h}]}}}`:                    schedule,
		`{sizing: {disruption: {windows: [{schedule: "TZ=UTC 0 2 * * *", duration: 1h}]}}}`:           schedule,
		`{sizing: {disruption: {windows: [{schedule: "@daily", duration: 1h, timeZone: Local}]}}}`:    zone,
		`{sizing: {disruption: {windows: [{schedule: "@daily", duration: 1h, timeZone: "+02:00"}]}}}`: zone,

		// Valid specs.
		`{sizing: {limit: {min: 0.1Gi, max: 268435456}, disruption: {watch: 90s, cooldown: 0s}}}`: "",
		`{sizing: {limit: {max: "1e9"}, disruption: {watch: 1h30m, cooldown: 1.5h}}}`:             "",
		`{containers: [{name: "*"}, {name: app-2}, {name: 0}]}`:                                   "",

		`{sizing: {disruption: {maxUnavailable: 3, windows: [` +
			`{schedule: "0 2 * * MON-FRI", duration: 1h, timeZone: America/Argentina/Ushuaia}]}}}`: "",
		`{sizing: {disruption: {maxUnavailable: 25%, windows: [` +
			`{schedule: "*/5 2,3 1-7 * 1-5", duration: 1h, timeZone: Etc/GMT+3}]}}}`: "",
	} {
		var object map[string]any
		const head = "apiVersion: memfit.dev/v1alpha1\nkind: MemoryProfile\nspec: "
		text := strings.NewReplacer("{name: 0}", `{name: "0"}`, "trimInterval: 30}", `trimInterval: "30"}`).Replace(spec)
		inJSON, err := yaml.YAMLToJSON([]byte(head + text))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(inJSON, &object); err != nil { // keeps integers, as the API server does
			t.Fatal(err)
		}
		errs, _ := v.Validate(t.Context(), nil, s, object, nil, celBudget)
		var got []string
		for _, err := range errs {
			got = append(got, err.Detail)
		}
		if joined := strings.Join(got, "; "); joined != want {
			t.Errorf("%s: errors\n  %s\nwant\n  %s", spec, joined, want)
		}
	}
}
