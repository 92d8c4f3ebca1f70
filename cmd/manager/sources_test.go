// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	usagectl "github.com/memfit/memfit/controllers/usage"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
)

func TestSourceOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // part of the error; empty: none
	}{
		"the kubelet by default": {},
		"a fallback":             {args: []string{"--usage-sources=kubelet,metrics-api"}},
		"a source nobody knows": {
			args: []string{"--usage-sources=kublet"}, want: `"kublet" must be kubelet, prometheus or metrics-api`,
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
		"queries of profiles":                {args: []string{"--prometheus-url=http://p", "--rollback-queries"}},
		"queries of profiles, and of nobody": {args: []string{"--rollback-queries"}, want: "needs --prometheus-url"},
		"a selector that is none": {
			args: []string{"--prometheus-url=http://p", "--prometheus-selector=prod-1"}, want: "the selector of Prometheus",
		},
		"an address without a scheme": {args: []string{"--prometheus-url=prometheus:9090"}, want: "--prometheus-url"},
		"a query of one's own": {
			args: []string{
				"--prometheus-url=http://p", "--prometheus-query=PeakRSS=max_over_time(rss{namespace={{.Namespace}}}[{{.Step}}])",
			},
		},
		"a query nobody asks": {
			args: []string{"--prometheus-query=Peak=x"}, want: "unknown query; must be one of LowDemand, LowRSS",
		},
		"a query that is no template": {
			args: []string{"--prometheus-url=http://p", "--prometheus-query=RSS={{.Nod}}"}, want: "RSS",
		},
		"a query without a name":            {args: []string{"--prometheus-query=x"}, want: "NAME=VALUE"},
		"counters too often":                {args: []string{"--kill-counters-interval=1s"}, want: "10s to 5m"},
		"counters too rarely for a demand":  {args: []string{"--kill-counters-interval=10m"}, want: "10s to 5m"},
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

// TestNamer: the container that runs now has the ID, of a pod that the inbox and the cache agree on.
func TestNamer(t *testing.T) {
	const uid = types.UID("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: uid},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", ContainerID: "containerd://c1"}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", ContainerID: "cri-o://c2"}, {Name: "not-yet"}},
		},
	}
	events := inbox.NewInbox()
	ref := memory.WorkloadRef{Namespace: "shop", Kind: "StatefulSet", Name: "web"}
	for known, key := range map[types.UID]types.NamespacedName{
		uid: {Namespace: "shop", Name: "web-0"}, "before": {Namespace: "shop", Name: "web-0"},
		"gone": {Namespace: "shop", Name: "web-1"},
	} {
		events.AddPod(known, key, ref)
	}
	name := namer(t.Context(), &usagectl.Collector{
		Reader: fake.NewClientBuilder().WithObjects(pod).Build(), Inbox: events,
	})
	for _, tc := range []struct {
		pod      types.UID
		id, want string
	}{
		{uid, "c1", "sidecar"}, {uid, "c2", "app"}, {uid, "2", ""}, {uid, "s1", ""},
		{"before", "c2", ""}, {"gone", "c2", ""}, {"nobody's", "c2", ""},
	} {
		got, ok := name(tc.pod, tc.id)
		want := memory.ContainerRef{}
		if tc.want != "" {
			want = memory.ContainerRef{Namespace: "shop", Pod: "web-0", UID: uid, Container: tc.want}
		}
		if got != want || ok != (tc.want != "") {
			t.Errorf("%s of %s is %v, %t, want %v", tc.id, tc.pod, got, ok, want)
		}
	}
}
