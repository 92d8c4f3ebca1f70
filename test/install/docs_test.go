// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRightsAreDocumented: whoever reviews memfit reads docs/security.md, and must not be surprised by what is installed.
func TestRightsAreDocumented(t *testing.T) {
	var want []string
	for _, tree := range trees {
		objects := build(t, tree)
		for _, role := range all[rbacv1.ClusterRole](t, objects, "ClusterRole") {
			want = append(want, rights(role.Name, role.Rules)...)
		}
		for _, role := range all[rbacv1.Role](t, objects, "Role") {
			want = append(want, rights(role.Name, role.Rules)...)
		}
	}
	got := documented(t)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("docs/security.md does not say what the manifests grant (-manifests +page):\n%s", diff)
	}
}

// rights spells rules out, one right a line: "memfit-manager-role core/pods get". Roles for people have a table of their own.
func rights(role string, rules []rbacv1.PolicyRule) []string {
	if strings.HasSuffix(role, "-admin-role") || strings.HasSuffix(role, "-editor-role") || strings.HasSuffix(role, "-viewer-role") {
		return nil
	}
	var out []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			if group == "" {
				group = "core"
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out = append(out, strings.Join(slices.Concat([]string{role, group, resource}, rule.ResourceNames, []string{verb}), " "))
				}
			}
		}
	}
	return out
}

// row is a line of the tables: role, API group, resources (one with a name in backticks, or several), verbs, reason.
var row = regexp.MustCompile("(?m)^\\| `(memfit-[a-z-]+)` \\| ([a-z0-9.]+) \\| ([^|]+) \\| ([a-z, ]+) \\| [^|]{12,} \\|$")

func documented(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		for resource := range strings.SplitSeq(strings.ReplaceAll(cells[3], "`", ""), ", ") {
			for verb := range strings.SplitSeq(cells[4], ", ") {
				out = append(out, strings.Join([]string{cells[1], cells[2], resource, verb}, " "))
			}
		}
	}
	return out
}
