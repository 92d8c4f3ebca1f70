// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRightsAreDocumented: docs/reference/security.md lists every right that the manifests grant, for those who review
// an installation.
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
		t.Errorf("docs/reference/security.md does not say what the manifests grant (-manifests +page):\n%s", diff)
	}
}

// rights spells rules out, one right a line: "memfit-manager-role core/pods get". Roles for people have a table of
// their own.
func rights(role string, rules []rbacv1.PolicyRule) []string {
	if strings.HasSuffix(role, "-admin-role") || strings.HasSuffix(role, "-editor-role") ||
		strings.HasSuffix(role, "-viewer-role") {
		return nil
	}
	var out []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out = append(
						out, strings.Join(slices.Concat([]string{role, named(group), resource}, rule.ResourceNames, []string{verb}), " "),
					)
				}
			}
		}
	}
	return out
}

// named is an API group as the page names it.
func named(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// row is a line of the tables: role, API group, resources (one with a name in backticks, or several), verbs, reason.
var row = regexp.MustCompile(
	"(?m)^\\| `(memfit-[a-z-]+)` \\| ([a-z0-9.]+) \\| ([^|]+) \\| ([a-z, ]+) \\| [^|]{12,} \\|$",
)

func documented(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/security.md"))
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

// TestThiefIsDocumented: docs/reference/security.md says for every identity what its token is worth, right by right.
func TestThiefIsDocumented(t *testing.T) {
	var want []string
	for _, tree := range trees {
		objects := build(t, tree)
		rules := map[string][]rbacv1.PolicyRule{}
		for _, role := range all[rbacv1.ClusterRole](t, objects, "ClusterRole") {
			rules["ClusterRole "+role.Name] = role.Rules
		}
		for _, role := range all[rbacv1.Role](t, objects, "Role") {
			rules["Role "+role.Name] = role.Rules
		}
		for _, b := range all[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
			want = append(want, worth(b.Subjects, rules[b.RoleRef.Kind+" "+b.RoleRef.Name])...)
		}
		for _, b := range all[rbacv1.RoleBinding](t, objects, "RoleBinding") {
			want = append(want, worth(b.Subjects, rules[b.RoleRef.Kind+" "+b.RoleRef.Name])...)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, cells := range thief.FindAllStringSubmatch(string(page), -1) {
		got = append(got, cells[1]+" "+cells[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("docs/reference/security.md does not say what a thief could do (-manifests +page):\n%s", diff)
	}
}

// TestEveryRoleIsInATree: the tables are derived from the trees, so a role of a component that is in none of them would
// be in no table.
func TestEveryRoleIsInATree(t *testing.T) {
	built := map[string]bool{}
	for _, tree := range trees {
		for _, object := range build(t, tree) {
			built[object.GetKind()+" "+object.GetName()] = true
		}
	}
	roles := 0
	config := os.DirFS(filepath.Join(root, "config"))
	err := fs.WalkDir(config, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := fs.ReadFile(config, path)
		if err != nil {
			return err
		}
		objects, err := decode(content)
		if err != nil { // a patch may be a list
			return nil //nolint:nilerr // which is no role
		}
		for _, object := range objects {
			kind, name := object.GetKind(), strings.TrimPrefix(object.GetName(), "memfit-")
			if kind != "Role" && kind != "ClusterRole" {
				continue
			}
			if roles++; !built[kind+" memfit-"+name] {
				t.Errorf("%s: %s %s is in none of %v, and so in no table of docs/reference/security.md",
					path, kind, object.GetName(), trees)
			}
		}
		return nil
	})
	if err != nil || roles < 15 {
		t.Errorf("%d roles found, want the 15 and more of config/ (%v)", roles, err)
	}
}

// thief is a line of the table: ServiceAccount, right, what a thief could do with it.
var thief = regexp.MustCompile("(?m)^\\| `(memfit-[a-z-]+)` \\| `([a-z0-9./]+)` \\| [^|]{8,} \\|$")

// worth are the rights among rules that change something, or read what is not for everybody, for each account.
func worth(subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) []string {
	private := []string{"pods", "configmaps", "secrets", "nodes/stats", "nodes/metrics"}
	var out []string
	for _, subject := range subjects {
		for _, rule := range rules {
			changes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" })
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if changes || group == "" && slices.Contains(private, resource) {
						out = append(out, subject.Name+" "+named(group)+"/"+resource)
					}
				}
			}
		}
	}
	return out
}

// TestNobodyIsToldToApplyAPlaceholder: the trees name the image "controller", which no registry has. Whoever applies
// one as it is built waits for a pull that never succeeds, so pages and comments say `make deploy`, which puts the real
// name in.
func TestNobodyIsToldToApplyAPlaceholder(t *testing.T) {
	var pages []string
	for _, pattern := range []string{
		"*.md", "docs/*/*.md", "config/*/kustomization.yaml", "config/*/*/kustomization.yaml",
	} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("nothing is %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	built := regexp.MustCompile(`kustomize build (config/[a-z/-]+)[^\n]*apply|apply -k (config/[a-z/-]+)`)
	made := regexp.MustCompile(`make (?:deploy|build-installer)[^\n]* TREE=(config/[a-z/-]+)`)
	named := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range built.FindAllStringSubmatch(string(text), -1) {
			for _, d := range all[appsv1.Deployment](t, build(t, match[1]+match[2]), "Deployment") {
				if image := d.Spec.Template.Spec.Containers[0].Image; strings.HasPrefix(image, "controller:") {
					t.Errorf("%s: %q would deploy the image %s", page, match[0], image)
				}
			}
		}
		for _, match := range made.FindAllStringSubmatch(string(text), -1) {
			named++
			if !slices.Contains(trees, match[1]) {
				t.Errorf("%s: %q names a tree that nobody tests", page, match[0])
			}
		}
	}
	if named == 0 {
		t.Error("no page says how to deploy an overlay")
	}
}
