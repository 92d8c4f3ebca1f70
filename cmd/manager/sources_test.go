// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestSourceOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // part of the error; empty: none
	}{
		"the kubelet by default": {},
		"a fallback":             {args: []string{"--usage-sources=kubelet,metrics-api"}},
		"a source nobody knows": {
			args: []string{"--usage-sources=kublet"}, want: `"kublet" is none of kubelet, prometheus, metrics-api`,
		},
		"prometheus without an address": {
			args: []string{"--usage-sources=prometheus"}, want: "prometheus needs --prometheus-url",
		},
		"prometheus": {
			args: []string{
				"--usage-sources=kubelet,prometheus", "--prometheus-url=https://mimir.example/prometheus",
				"--prometheus-header=X-Scope-OrgID=a=b",
			},
		},
		"an address without a scheme": {args: []string{"--prometheus-url=prometheus:9090"}, want: "--prometheus-url"},
		"a query of one's own": {
			args: []string{
				"--prometheus-url=http://p", "--prometheus-query=PeakRSS=max_over_time(rss{namespace={{.Namespace}}}[{{.Step}}])",
			},
		},
		"a query nobody asks": {
			args: []string{"--prometheus-query=Peak=x"}, want: "there is no such query; say one of LowRSS",
		},
		"a query that is no template": {
			args: []string{"--prometheus-url=http://p", "--prometheus-query=RSS={{.Nod}}"}, want: "RSS",
		},
		"a query without a name":            {args: []string{"--prometheus-query=x"}, want: "NAME=VALUE"},
		"counters too often":                {args: []string{"--kill-counters-interval=1s"}, want: "at least 10s"},
		"no counters":                       {args: []string{"--kill-counters-interval=0"}},
		"more history than memfit keeps":    {args: []string{"--prometheus-history=1000h"}, want: "35 days"},
		"steps finer than anybody measures": {args: []string{"--prometheus-step=1s"}, want: "15s to 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args, func(string) string { return "" })
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
		})
	}
}
