// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/internal/workloadkind"
)

// mayNameKinds are the files besides the table that may name the kind Pod, each with the reason.
var mayNameKinds = map[string]string{
	"internal/owners/resolver.go": "a pod without an owner is its own workload",
	"internal/workload/events.go": "events are about pods",

	"cmd/agent/internal/snapshot/write.go": "a pod owns its snapshot",
}

// TestNobodyElseNamesAKind checks that only internal/workloadkind names kinds of workloads. Properties of a kind are
// columns of its table: a developer who adds a kind would miss a list of kinds elsewhere.
func TestNobodyElseNamesAKind(t *testing.T) {
	named := map[string]bool{}
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") || !shipped(f) || path.Dir(f) == "internal/workloadkind" {
			continue
		}
		found := kindsNamed(string(read(t, f)))
		named[f] = len(found) > 0
		if mayNameKinds[f] != "" {
			found = slices.DeleteFunc(found, func(text string) bool { return text == `"Pod"` })
		}
		for _, text := range found {
			t.Errorf("%s names %s: add a column to the table in internal/workloadkind and use the column", f, text)
		}
	}
	for f, why := range mayNameKinds {
		if !named[f] {
			t.Errorf("%s names no kind: remove its exception (%s)", f, why)
		}
	}
	const source = "package p\n\n// CronJob\nvar a = kind == \"Job\" || kind == \"a Job\" || resource == `cronjobs`\n"
	if got, want := kindsNamed(source), []string{`"Job"`, "`cronjobs`"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// kindsNamed returns the string literals of a source file that equal a kind, its lower-case name or its resource; for
// pods only the kind, because "pod" and "pods" are also keys of log lines and resources of client requests.
func kindsNamed(source string) (found []string) {
	var names []string
	for _, k := range workloadkind.All() {
		names = append(names, k.Name)
		if !workloadkind.IsPod(k.APIVersion(), k.Name) {
			names = append(names, strings.ToLower(k.Name), k.Resource)
		}
	}
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", -1, len(source)), []byte(source), nil, 0)
	for {
		_, kind, text := s.Scan()
		if kind == token.EOF {
			return found
		}
		if kind == token.STRING && slices.Contains(names, text[1:len(text)-1]) {
			found = append(found, text)
		}
	}
}

// TestWatchedKindsMayBeRead checks that the role allows memfit to read every watched kind. Otherwise an informer never
// syncs, and the manager never becomes ready.
func TestWatchedKindsMayBeRead(t *testing.T) {
	var role struct {
		Rules []struct{ APIGroups, Resources, Verbs []string }
	}
	const file = "config/rbac/role.yaml"
	if err := yaml.Unmarshal(read(t, file), &role); err != nil {
		t.Fatal(err)
	}
	for _, k := range workloadkind.All() {
		may := false
		for _, rule := range role.Rules {
			may = may || slices.Contains(rule.APIGroups, k.Group) && slices.Contains(rule.Resources, k.Resource) &&
				slices.Contains(rule.Verbs, "get") && slices.Contains(rule.Verbs, "list") && slices.Contains(rule.Verbs, "watch")
		}
		if k.Watched && !may {
			t.Errorf("%s does not allow memfit to read %s of group %q", file, k.Resource, k.Group)
		}
	}
}
