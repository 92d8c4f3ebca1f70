// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"strings"
	"testing"
)

// TestWhatTheAPIServerRefusesIsRefused: by the schema, its rules, strict decoding and the webhook for profiles.
func TestWhatTheAPIServerRefusesIsRefused(t *testing.T) {
	const head = "apiVersion: memfit.dev/v1alpha1\nkind: MemoryProfile\nmetadata: {name: web, namespace: shop}\n"
	const cluster = "apiVersion: memfit.dev/v1alpha1\nkind: ClusterMemoryProfile\nmetadata: {name: web}\n"
	for profile, want := range map[string]string{
		head + "spec: {runtime: {type: Rust}}":    `spec.runtime.type: Unsupported value: "Rust": supported values: "Auto"`,
		cluster + "spec: {runtime: {type: Rust}}": `spec.runtime.type: Unsupported value: "Rust": supported values: "Auto"`,

		head + "spec: {containers: [{name: a, mode: Off}]}": `spec.containers[0].mode: Unsupported value: "Off"`,
		head + "spec: {sizing: {mode: Sometimes}}":          `spec.sizing.mode: Unsupported value: "Sometimes"`,
		head + "spec: {tuning: {heapPercent: 101}}":         "spec.tuning.heapPercent: Invalid value: 101",
		head + "spec: {runtime: {version: \"a b\"}}":        "spec.runtime.version",
		head + "spec: {drift: {window: 1d}}":                `spec.drift.window: Invalid value: "1d": window must be between 1h and 168h`,
		head + "spec: {containers: [{}]}":                   "spec.containers[0].name: Required value",
		head + "spec: {containers: [{name: a}, {name: a}]}": "spec.containers[1]: Duplicate value",
		head + "spec: {tuning: {heapPrecent: 60}}":          `unknown field "spec.tuning.heapPrecent"`,
		head + "spec: {Tuning: {}}":                         `unknown field "spec.Tuning"`,
		head + "spec: {namespaceSelector: {}}":              `unknown field "spec.namespaceSelector"`,
		head + "specs: {}":                                  `unknown field "specs"`,

		head + "spec: {runtime: {type: JVM}, tuning: {heapLimit: 1Gi}}":                            "use heapPercent",
		head + "spec: {selector: {matchLabels: {app: no spaces}}}":                                 "spec.selector.matchLabels",
		head + "spec: {tuning: {trimInterval: 1.0005s}}":                                           "must be whole milliseconds",
		head + "spec: {tuning: {reserve: 2Gi}, sizing: {limit: {max: 1Gi}}}":                       "tuning.reserve: 2Gi is not below",
		head + "spec: {sizing: {limit: {max: 1Gi}, request: {min: 2Gi}}}":                          "request.min must not be above limit.max",
		head + "spec: {sizing: {limit: {max: 1Gi}}, containers: [{name: a, request: {min: 2Gi}}]}": "sizing.request.min 2Gi",
		cluster + "spec: {namespaceSelector: {matchLabels: {app: no spaces}}}":                     "spec.namespaceSelector.matchLabels",
		strings.Replace(head, "v1alpha1", "v2", 1):                                                 `apiVersion: unsupported value "memfit.dev/v2"`,
		strings.Replace(head, "name: web", "name: Web_", 1):                                        `metadata.name: Invalid value: "Web_"`,
		strings.Replace(head, "name: web,", "", 1):                                                 "metadata.name: Required value",
		strings.Replace(head, "name: web,", "name: web, label: {a: b},", 1):                        `unknown field "metadata.label"`,
		strings.Replace(head, "name: web,", "name: web, labels: {a: b c},", 1):                     "metadata.labels: Invalid value",
		strings.Replace(head, "namespace: shop", "namespace: Shop", 1):                             "metadata.namespace: Invalid value",
		strings.Replace(cluster, "name: web", "name: web, namespace: x", 1):                        "",
		head + "spec: {tuning: null, runtime: null, containers: [{name: a}]}":                      "",
		head + "spec: {containers: [{name: \"*\", runtime: {version: \"20\"}}]}":                   "",
	} {
		_, err := Inject([]byte(aPod), Options{Profiles: []byte(profile)})
		if want == "" && err != nil {
			t.Errorf("%s\nis refused: %v", profile, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\nis answered with %v, want %s", profile, err, want)
		}
	}
}
