// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestVerdict: what the schema lets through and cannot be meant is refused with what to write instead.
func TestVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		// want are words of the refusal; none: the profile is taken.
		want []string
		// warns are words of the warnings.
		warns []string
	}{
		"an empty profile": {spec: `{}`},
		"a sensible one": {
			spec: `{selector: {matchLabels: {app: web}}, runtime: {type: NodeJS, version: "20"}, sizing: {limit: {min: 64Mi, max: 4Gi}}}`,
		},
		"a label that cannot be": {
			spec: `{selector: {matchLabels: {app: "no spaces"}}}`, want: []string{"spec.selector.matchLabels", "no spaces"},
		},
		"an operator without values": {
			spec: `{selector: {matchExpressions: [{key: app, operator: In}]}}`, want: []string{"matchExpressions[0].values"},
		},
		"an operator nobody knows": {
			spec: `{selector: {matchExpressions: [{key: app, operator: Is, values: [web]}]}}`,
			want: []string{"matchExpressions[0].operator", "Is"},
		},
		"half a byte": {
			spec: `{sizing: {limit: {max: 512m}}}`, want: []string{"spec.sizing.limit.max", "512Mi"},
		},
		"a number without its unit": {
			spec: `{sizing: {request: {min: 512}}}`, want: []string{"spec.sizing.request.min", "512Mi"},
		},
		"a request no limit can hold": {
			spec: `{sizing: {limit: {max: 1Gi}, request: {min: 2Gi}}}`,
			want: []string{"spec.sizing.request.min", "1Gi", "lower request.min or raise limit.max"},
		},
		"the same for one container": {
			spec: `{sizing: {limit: {max: 1Gi}}, containers: [{name: app, request: {min: 2Gi}}]}`,
			want: []string{"spec.containers[app].request.min"},
		},
		"a container with other bounds": {
			spec: `{sizing: {limit: {max: 1Gi}}, containers: [{name: app, limit: {max: 4Gi}, request: {min: 2Gi}}]}`,
		},
		"half a MiB of semi-space": {
			spec: `{tuning: {nodejs: {semiSpace: 1536Ki}}}`, want: []string{"semiSpace", "whole MiB"},
		},
		"a heap size for the JVM": {
			spec: `{runtime: {type: JVM}, tuning: {heapLimit: 256Mi}}`, want: []string{"heapLimit", "heapPercent"},
		},
		"resizing in place": {spec: `{sizing: {mode: InPlace}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var spec v1alpha1.MemoryProfileSpec
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			warnings, err := profileValidator{}.ValidateCreate(
				t.Context(), &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec},
			)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("refused with %v, want words %q", err, tc.want)
			}
			for _, word := range tc.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			all := strings.Join(warnings, "\n")
			if all != "" && len(tc.warns) == 0 {
				t.Errorf("warned of %q, want nothing", all)
			}
			for _, word := range tc.warns {
				if !strings.Contains(all, word) {
					t.Errorf("warnings %q do not say %q", all, word)
				}
			}
		})
	}
}

func TestAProfileForTheWholeClusterIsPointedOut(t *testing.T) {
	everything := &v1alpha1.ClusterMemoryProfile{Spec: v1alpha1.MemoryProfileSpec{Selector: &metav1.LabelSelector{}}}
	warnings, err := clusterProfileValidator{}.ValidateCreate(t.Context(), everything)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "every pod") {
		t.Errorf("got %q, %v; want one warning and no refusal", warnings, err)
	}
}
