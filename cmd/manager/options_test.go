// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/tree"
)

// TestOptions: what cannot work is refused before anything starts, with what to say instead.
func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		want string // part of the error; empty: accepted
	}{
		"defaults": {},
		"self-managed, in a namespace": {
			args: []string{"--cert-mode=self-managed"}, env: map[string]string{"POD_NAMESPACE": "memfit-system"},
		},
		"self-managed, nobody knows where": {args: []string{"--cert-mode=self-managed"}, want: "POD_NAMESPACE"},
		"a mode nobody knows":              {args: []string{"--cert-mode=vault"}, want: "cert-manager or self-managed"},
		"no usage at all":                  {args: []string{"--usage-interval=0"}},
		"usage without a break":            {args: []string{"--usage-interval=1ms"}, want: "at least 1s"},
		"a checkpoint a millisecond":       {args: []string{"--checkpoint-interval=1ms"}, want: "at least 1s"},
		"a change budget":                  {args: []string{"--change-budget-bytes=16Gi", "--change-budget-pods=20"}},
		"a budget without a unit":          {args: []string{"--change-budget-bytes=16"}, want: "for example 16Gi"},
		"a budget that is no amount":       {args: []string{"--change-budget-bytes=much"}, want: "for example 16Gi"},
		"a budget below nothing":           {args: []string{"--change-budget-bytes=-1Gi"}, want: "for example 16Gi"},
		"fewer pods than none":             {args: []string{"--change-budget-pods=-1"}, want: "for example 20"},
		"a flag nobody knows":              {args: []string{"--no-such-flag"}, want: "no-such-flag"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args, func(key string) string { return tc.env[key] })
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v: got %v, want %q", tc.args, err, tc.want)
			}
		})
	}
}

// TestOneOfSeveralReplicasLeads: two that both run the controllers write the same checkpoints.
func TestOneOfSeveralReplicasLeads(t *testing.T) {
	o, err := parse(nil, func(string) string { return "" })
	if err != nil || !managerOptions(o, nil).LeaderElection {
		t.Errorf("leader election is off by default (%v)", err)
	}
}

// TestLeaderHasTimeToKnowAllPods: a leader that gives up and ends begins again with nothing, so one that is given less
// time than a large cluster takes at a busy API server would never begin.
func TestLeaderHasTimeToKnowAllPods(t *testing.T) {
	if got := managerOptions(options{}, nil).Controller.CacheSyncTimeout; got < 10*time.Minute {
		t.Errorf("the leader gives up after %s", got)
	}
}

// TestChangeBudget: there is none unless somebody asks for one, and each of its bounds stands for itself.
func TestChangeBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want rollout.ChangeBudget
	}{
		"defaults": {},
		"bytes":    {args: []string{"--change-budget-bytes=1536Mi"}, want: rollout.ChangeBudget{Bytes: 1536 * memory.MiB}},
		"pods":     {args: []string{"--change-budget-pods=3"}, want: rollout.ChangeBudget{Pods: 3}},
	} {
		o, err := parse(tc.args, func(string) string { return "" })
		if err != nil || o.changeBudget != tc.want || o.changeBudget.Limited() != (name != "defaults") {
			t.Errorf("%s: %+v (%v), want %+v", name, o.changeBudget, err, tc.want)
		}
	}
}

// TestConfigMapsAreNotReadUnlessAsked: by flag, or by the variable that a kustomize component sets.
func TestConfigMapsAreNotReadUnlessAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  string
		want bool
	}{
		"defaults": {}, "by flag": {args: []string{"--read-configmap-keys"}, want: true},
		"by the component": {env: "true", want: true},
		"the flag wins":    {args: []string{"--read-configmap-keys=false"}, env: "true"},
	} {
		o, err := parse(tc.args, func(key string) string {
			if key == "READ_CONFIGMAP_KEYS" {
				return tc.env
			}
			return ""
		})
		if err != nil || o.configMapKeys != tc.want {
			t.Errorf("%s: read %t (%v), want %t", name, o.configMapKeys, err, tc.want)
		}
	}
}

// TestClientCertificatesByVariable: the component config/client-ca sets variables, and flags win.
func TestClientCertificatesByVariable(t *testing.T) {
	env := map[string]string{"CLIENT_CA": "/etc/ca.crt", "CLIENT_NAMES": "a,b"}
	o, err := parse(nil, func(key string) string { return env[key] })
	if err != nil || o.clientCA != "/etc/ca.crt" || !slices.Equal(listed(o.clientNames), []string{"a", "b"}) {
		t.Errorf("%q for %q (%v)", o.clientCA, listed(o.clientNames), err)
	}
	if o, err = parse(
		[]string{"--client-ca=/other.crt", "--client-names="}, func(key string) string { return env[key] },
	); err != nil || o.clientCA != "/other.crt" || len(listed(o.clientNames)) != 0 {
		t.Errorf("with flags %q for %q (%v)", o.clientCA, listed(o.clientNames), err)
	}
	if _, err = parse(nil, func(key string) string { return map[string]string{"CLIENT_NAMES": "a"}[key] }); err == nil {
		t.Error("names without an authority are accepted")
	}
}

// TestExcludedNamespaces: the controllers keep away from the namespaces whose pods the API server does not send to the
// webhook; otherwise every pod there would be reported as missed.
func TestExcludedNamespaces(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(tree.Root(), "config", "webhook", "pod_webhook_patch.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.Unmarshal(data, &configuration); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(configuration.Webhooks[0].NamespaceSelector.MatchExpressions[0].Values)
	o, err := parse(nil, func(name string) string { return map[string]string{"POD_NAMESPACE": "memfit-system"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	got := o.excluded()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the manager excludes %v, the webhook configuration %v", got, want)
	}
}
