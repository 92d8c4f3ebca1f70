// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
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
		{"Reverted", []string{"history", "deploy/web", "-n", "shop", "-o", "jsonpath={.items[*].what}"}},
		{"Increase\n", []string{"explain", "deploy/web", "-n", "shop", "-o", "jsonpath={.status.containers[0].decision}"}},
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
		{"-o csv is unknown: use json, yaml, jsonpath=", []string{"explain", "deploy/web", "-o", "csv"}},
		{"-o name is unknown: use json, yaml", []string{"history", "deploy/web", "-o", "name"}},
		{"-o wide is unknown: use svg, json", []string{"map", "web-7d9f8", "-o", "wide"}},
		{`context "nope" does not exist`, []string{"status", "--context", "nope"}},
		{"--sort-by nope is unknown: use urgency, use, kills, name", []string{"status", "--sort-by", "nope"}},
	} {
		if out, errs, code := c.run("reader", append(tc.args, "-n", "shop")...); code != exitFailed || out != "" ||
			!strings.Contains(errs, tc.want) {
			t.Errorf("%q: exit %d, %q, %q; want %q", tc.args, code, out, errs, tc.want)
		}
	}
}
