// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// formats prints the shop as kubectl users ask for it.
func (c server) formats(t *testing.T) {
	t.Helper()
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"deployment.apps/web\n", []string{"status", "-n", "shop", "-o", "name"}},
		{"daemonset.apps/agent\nstatefulset.apps/orders\n", []string{
			"status", "-n", "shop", "-o", "name", "--sort-by", "name",
		}},
		{"web orders web agent report\n", []string{"status", "-n", "shop", "-o", "jsonpath={.items[*].name}"}},
		{"pod/web-7d9f8\n", []string{"top", "-n", "inside", "-o", "name"}},
		{"app 512Mi\n", []string{"top", "-n", "inside", "-o", "jsonpath={.items[0].container} {.items[0].limit}"}},
		{"statefulset.apps/web\n", []string{"scan", "-n", "inside", "-o", "name"}},
		{"Reverted", []string{"history", "deploy/web", "-n", "shop", "--no-headers"}},
		{"Increase\n", []string{"explain", "deploy/web", "-n", "shop", "-o", "jsonpath={.containers[0].decision}"}},
		{"MemorySnapshot\n", []string{"map", "web-7d9f8", "-n", "inside", "-o", "jsonpath={.kind}"}},
		{"inside web-7d9f8\n", []string{"why", "web-7d9f8", "-n", "inside", "-o", "jsonpath={.namespace} {.pod}"}},
	} {
		if out, errs, code := c.run("reader", tc.args...); code != 0 || !strings.Contains(out, tc.want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", tc.args, code, out, errs, tc.want)
		}
	}
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"-o csv is not known: use json, yaml, jsonpath=", []string{"explain", "deploy/web", "-o", "csv"}},
		{"-o name is not known: use wide, json", []string{"history", "deploy/web", "-o", "name"}},
		{"-o wide is not known: use svg, json", []string{"map", "web-7d9f8", "-o", "wide"}},
		{"--sort-by nope is not known: use urgency, use, kills, name", []string{"status", "--sort-by", "nope"}},
	} {
		if out, errs, code := c.run("reader", append(tc.args, "-n", "shop")...); code != exitFailed || out != "" ||
			!strings.Contains(errs, tc.want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", tc.args, code, out, errs, tc.want)
		}
	}
}

// clusters asks the one API server by two names, and one that is not there.
func (c server) clusters(t *testing.T) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	only := config.Contexts[config.CurrentContext]
	twin, gone, nowhere := only.DeepCopy(), only.DeepCopy(), config.Clusters[only.Cluster].DeepCopy()
	gone.Cluster, nowhere.Server = "nowhere", "https://127.0.0.1:1"
	config.CurrentContext = "envtest"
	config.Contexts = map[string]*clientcmdapi.Context{"envtest": only, "twin": twin, "gone": gone}
	config.Clusters["nowhere"] = nowhere
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		t.Fatal(err)
	}

	out, errs, code := c.run("reader", "status", "-n", "shop", "--context", "twin", "--context", "envtest,twin")
	lines := strings.Split(out, "\n")
	if code != 0 || errs != "" || !strings.HasPrefix(lines[0], "CLUSTER   WORKLOAD ") ||
		!strings.HasPrefix(lines[1], "envtest   deployment/web ") ||
		!strings.HasPrefix(lines[2], "twin      deployment/web ") {
		t.Errorf("exit %d, %q,\n%s", code, errs, out)
	}
	if !strings.Contains(out, "For Git: kubectl memfit export --context envtest -n shop deployment/web") {
		t.Errorf("a command that is copied may end up in another cluster:\n%s", out)
	}
	out, errs, code = c.run("reader", "top", "-n", "inside", "--context", "gone,twin", "--request-timeout", "20s")
	if code != exitFailed || !strings.Contains(errs, "context gone: listing pods") ||
		!strings.Contains(out, "\ntwin      web-7d9f8") {
		t.Errorf("one of two cannot be read: exit %d, %q,\n%s", code, errs, out)
	}
	if out, _, code := c.run(
		"reader", "scan", "-n", "inside", "--context", "envtest,twin", "-o", "jsonpath={.items[*].cluster}",
	); code != 0 || out != "envtest twin\n" {
		t.Errorf("for machines: exit %d, %q", code, out)
	}
	for want, args := range map[string][]string{
		"this command reads one cluster: name one --context": {"explain", "deploy/web", "--context", "envtest,twin"},
		"--write is about one cluster: name one --context":   {"scan", "--write", "x", "--context", "envtest,twin"},
		"context was not found for specified context: nope":  {"status", "--context", "envtest,nope"},
		"--context names an empty context":                   {"status", "--context", "envtest,"},
	} {
		if out, errs, code := c.run("reader", args...); code != exitFailed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
}
