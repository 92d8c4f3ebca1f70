// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/period"
)

func noEnv(string) string { return "" }

// namespaces is an API server that has these namespaces and lists them by name. It serves no single one, because the
// manager has no right to get a namespace.
func namespaces(t *testing.T, all ...corev1.Namespace) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces" {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
		for _, ns := range all {
			if r.URL.Query().Get("fieldSelector") == "metadata.name="+ns.Name {
				list.Items = append(list.Items, ns)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func namespaceOf(name, lab string) corev1.Namespace {
	ns := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if lab != "" {
		ns.Labels = map[string]string{v1alpha1.LabLabel: lab}
	}
	return ns
}

// TestEvidenceIsCompressedInALabOnly: in any other cluster the manager ends with an error that names the label.
func TestEvidenceIsCompressedInALabOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		factor    int
		namespace string
		want      string // part of the error; empty: accepted
	}{
		"not asked for":          {factor: 1, namespace: "memfit-system"},
		"a lab":                  {factor: 144, namespace: "lab"},
		"no lab":                 {factor: 144, namespace: "memfit-system", want: "memfit.dev/lab=true"},
		"a lab that is none":     {factor: 144, namespace: "former", want: "memfit.dev/lab=true"},
		"a namespace of nowhere": {factor: 144, namespace: "gone", want: "does not exist"},
		"no namespace":           {factor: 144, want: "POD_NAMESPACE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { _ = period.Compress(1) })
			config := namespaces(t, namespaceOf("memfit-system", ""), namespaceOf("lab", "true"), namespaceOf("former", "false"))
			err := compressEvidence(t.Context(), config, options{namespace: tc.namespace, compressEvidence: tc.factor})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			want := 1
			if tc.want == "" {
				want = tc.factor
			}
			if got := period.Factor(); got != want {
				t.Errorf("evidence is compressed by %d, want %d", got, want)
			}
		})
	}
}

func TestCompressedEvidenceOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		env    string
		factor int
		want   string // part of the error
	}{
		"defaults":           {factor: 1},
		"by flag":            {args: []string{"--lab-compress-evidence=144"}, factor: 144},
		"by variable":        {env: "60", factor: 60},
		"the flag wins":      {args: []string{"--lab-compress-evidence=1"}, env: "60", factor: 1},
		"no number":          {env: "fast", want: "LAB_COMPRESS_EVIDENCE=fast"},
		"an uneven hour":     {args: []string{"--lab-compress-evidence=7"}, want: "it must divide 3600"},
		"an hour of seconds": {args: []string{"--lab-compress-evidence=3600"}, want: "between 1 (not compressed) and 360"},
		"none":               {args: []string{"--lab-compress-evidence=0"}, want: "between 1 (not compressed) and 360"},
	} {
		o, err := parse(tc.args, func(key string) string {
			return map[string]string{"LAB_COMPRESS_EVIDENCE": tc.env}[key]
		})
		switch {
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		case tc.want == "" && (err != nil || o.compressEvidence != tc.factor):
			t.Errorf("%s: %d (%v), want %d", name, o.compressEvidence, err, tc.factor)
		}
	}
}

// TestIntervalsFollowCompressedEvidence: a compressed hour has its samples, unless a flag sets the interval.
func TestIntervalsFollowCompressedEvidence(t *testing.T) {
	type intervals struct{ usage, counters, checkpoint time.Duration }
	for name, tc := range map[string]struct {
		args []string
		want intervals
	}{
		"defaults": {want: intervals{15 * time.Second, time.Minute, 10 * time.Minute}},
		"by two": {
			[]string{"--lab-compress-evidence=2"}, intervals{7500 * time.Millisecond, 30 * time.Second, 5 * time.Minute},
		},
		"by 144": {
			[]string{"--lab-compress-evidence=144"}, intervals{5 * time.Second, 10 * time.Second, 10 * time.Second},
		},
		"usage turned off": {
			[]string{"--lab-compress-evidence=144", "--usage-interval=0"}, intervals{0, 10 * time.Second, 10 * time.Second},
		},
		"all set": {
			[]string{
				"--lab-compress-evidence=144", "--usage-interval=15s", "--kill-counters-interval=1m", "--checkpoint-interval=10m",
			}, intervals{15 * time.Second, time.Minute, 10 * time.Minute},
		},
	} {
		o, err := parse(tc.args, noEnv)
		if got := (intervals{o.usageInterval, o.sources.killCounters, o.checkpointInterval}); err != nil || got != tc.want {
			t.Errorf("%s: %v (%v), want %v", name, got, err, tc.want)
		}
	}
}
