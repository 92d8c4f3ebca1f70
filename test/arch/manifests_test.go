// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// manifests returns the YAML files under config/.
func manifests(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files(t)), func(f string) bool {
		return !strings.HasPrefix(f, "config/") || path.Ext(f) != ".yaml" && path.Ext(f) != ".yml"
	})
}

// byIndex matches a JSON patch path with a list index; "-" (append) is allowed.
var byIndex = regexp.MustCompile(`(^|[-\s{,"'])path["']?:\s*["']?/[^\s,}"']*/\d+(/|["']?\s*([,}#]|$))`)

// TestPatchesByName refuses patches by list index: they edit the wrong item after a user inserted one above it.
func TestPatchesByName(t *testing.T) {
	for _, f := range manifests(t) {
		for i, line := range strings.Split(string(read(t, f)), "\n") {
			if byIndex.MatchString(line) {
				t.Errorf("%s:%d patches by list index; use a strategic merge patch with the item's name: %s", f, i+1,
					strings.TrimSpace(line))
			}
		}
	}
}

func TestByIndex(t *testing.T) {
	for line, want := range map[string]bool{
		"- path: /webhooks/0":                                   true,
		"  path: /spec/template/spec/containers/0/args/-":       true,
		"- {op: add, path: /spec/containers/0}":                 true,
		`[{"op": "add", "path": "/spec/containers/12/args/-"}]`: true,
		"path: /spec/template/spec/volumes/-":                   false,
		"path: /healthz":                                        false,
		"- path: manager_webhook_patch.yaml":                    false,
		"mountPath: /certs/1":                                   false,
		"path: /mutate--v1-pod":                                 false,
	} {
		if got := byIndex.MatchString(line); got != want {
			t.Errorf("%q: patches by index = %t, want %t", line, got, want)
		}
	}
}

// TestRBACReasons checks that each permission has its reason beside it, for the administrators who review memfit.
func TestRBACReasons(t *testing.T) {
	for _, f := range goFiles(t) {
		lines := strings.Split(string(read(t, f)), "\n")
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "// +kubebuilder:rbac:") && (i == 0 || !isProse(lines[i-1])) {
				t.Errorf("%s:%d: RBAC marker without a reason; add one in a comment line directly above each marker", f, i+1)
			}
		}
	}
	for _, f := range manifests(t) {
		// role.yaml is generated from the markers above.
		if f == "config/rbac/role.yaml" || !strings.HasPrefix(f, "config/rbac/") && !strings.HasPrefix(f, "config/agent/") {
			continue
		}
		for _, line := range rulesWithoutReason(string(read(t, f))) {
			t.Errorf("%s:%d: RBAC rule without a reason; add one in a comment directly above the rule or on its first line",
				f, line)
		}
	}
}

// isProse reports whether a line is a comment that is neither empty nor a marker.
func isProse(line string) bool {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
	text = strings.TrimSpace(text)
	return ok && text != "" && !strings.HasPrefix(text, "+")
}

// rulesWithoutReason returns the line numbers of list items under "rules:" without a comment.
func rulesWithoutReason(manifest string) []int {
	var bare []int
	inRules, commented := false, false
	for i, line := range strings.Split(manifest, "\n") {
		text := strings.TrimSpace(line)
		nested := strings.HasPrefix(line, "    ") // the fields of a rule, and its own lists
		switch {
		case strings.HasPrefix(line, "rules:"):
			inRules = true
		case text == "" || strings.HasPrefix(text, "#") || nested:
		case strings.HasPrefix(text, "- ") && inRules:
			if firstLineOfRule.MatchString(text) && !commented && !strings.Contains(text, " #") {
				bare = append(bare, i+1)
			}
		case !strings.HasPrefix(line, " "):
			inRules = false
		}
		commented = strings.HasPrefix(text, "#")
	}
	return bare
}

var firstLineOfRule = regexp.MustCompile(`^- (apiGroups|resources|resourceNames|verbs|nonResourceURLs):`)

func TestRulesWithoutReason(t *testing.T) {
	const manifest = `kind: ClusterRole
rules:
# to read usage
- apiGroups: [""]
  resources: [nodes/stats]
  verbs:
  - get
- apiGroups: [""]
  resources: [pods]
- apiGroups: [memfit.dev] # what memfit writes
---
kind: Role
rules:
  - verbs: [get]
`
	if got, want := rulesWithoutReason(manifest), []int{8, 14}; !slices.Equal(got, want) {
		t.Errorf("rules without a reason are on lines %v, want %v", got, want)
	}
}

// TestClusterRolesStaySmall refuses permissions that memfit does not need: nodes/proxy allows commands in every pod,
// and cluster-wide access to Secrets gives access to everything.
func TestClusterRolesStaySmall(t *testing.T) {
	forbidden := []string{"nodes/proxy", "nodes/*", "secrets", "*", "*/*"}
	for _, f := range manifests(t) {
		for doc := range strings.SplitSeq("\n"+string(read(t, f)), "\n---") {
			var role struct {
				Kind     string
				Metadata struct{ Name string }
				Rules    []struct{ Resources []string }
			}
			// A kustomize patch may be a list, which is not a role.
			if err := yaml.Unmarshal([]byte(doc), &role); err != nil || role.Kind != "ClusterRole" {
				continue
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if slices.Contains(forbidden, resource) {
						t.Errorf("%s: ClusterRole %s may not name %q", f, role.Metadata.Name, resource)
					}
				}
			}
		}
	}
}
