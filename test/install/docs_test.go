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

// TestRightsAreDocumented checks that docs/reference/security.md lists exactly the permissions of the manifests.
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
		t.Errorf("permissions in docs/reference/security.md (-manifests +page):\n%s", diff)
	}
}

// rights returns one entry per permission: "memfit-manager-role core pods get". It skips roles for users, which have a
// separate table.
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

// named returns an API group's name on the page.
func named(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// row matches a table row: role, API group, resources (several, or one and a resourceName in backticks), verbs, reason.
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

// TestThiefIsDocumented checks that docs/reference/security.md describes, for each ServiceAccount and permission, what
// a thief could do with the token.
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
		t.Errorf("table of stolen tokens in docs/reference/security.md (-manifests +page):\n%s", diff)
	}
}

// TestEveryRoleIsInATree checks that a tree contains each role of config/. The tables are compared with the trees, so
// they would lack a role that no tree contains.
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
			return nil //nolint:nilerr // a list is not a role
		}
		for _, object := range objects {
			kind, name := object.GetKind(), strings.TrimPrefix(object.GetName(), "memfit-")
			if kind != "Role" && kind != "ClusterRole" {
				continue
			}
			if roles++; !built[kind+" memfit-"+name] {
				t.Errorf("%s: %s %s is in none of %v, so docs/reference/security.md is not checked for it",
					path, kind, object.GetName(), trees)
			}
		}
		return nil
	})
	if err != nil || roles < 15 {
		t.Errorf("%d roles found in config/, want at least 15 (%v)", roles, err)
	}
}

// thief matches a table row: ServiceAccount, permission, what a thief could do with it.
var thief = regexp.MustCompile("(?m)^\\| `(memfit-[a-z-]+)` \\| `([a-z0-9./]+)` \\| [^|]{8,} \\|$")

// worth returns, for each subject, the rules' permissions that change objects or read private data.
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

// TestDocsDoNotApplyAPlaceholder checks that no page or comment has a command that applies a tree as it is built: its
// image "controller" is a placeholder, which cannot be pulled. They use `make deploy`, which sets the real name.
func TestDocsDoNotApplyAPlaceholder(t *testing.T) {
	var pages []string
	for _, pattern := range []string{
		"*.md", "docs/*/*.md", "config/*/kustomization.yaml", "config/*/*/kustomization.yaml",
	} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no file matches %s: %v", pattern, err)
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
				t.Errorf("%s: %q names an untested tree", page, match[0])
			}
		}
	}
	if named == 0 {
		t.Error("no page has a command that deploys an overlay")
	}
}
