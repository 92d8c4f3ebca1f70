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

// mayNameKinds are the files that name a kind of workload besides the table, each with what it is there for.
var mayNameKinds = map[string]string{
	"internal/owners/resolver.go": "a pod that nothing owns is its own workload",
	"internal/workload/events.go": "events are about pods",

	"cmd/agent/internal/snapshot/write.go": "a snapshot is of a pod, which owns it",
}

// TestNobodyElseNamesAKind: what is special about a kind of workload is a column of the table. A list of kinds
// somewhere else is what no one who adds one knows of.
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
			t.Errorf("%s names %s: add a column to the table in internal/workloadkind and ask for that", f, text)
		}
	}
	for f, why := range mayNameKinds {
		if !named[f] {
			t.Errorf("%s names no kind any more, so it needs no exception (%s)", f, why)
		}
	}
	const source = "package p\n\n// CronJob\nvar a = kind == \"Job\" || kind == \"a Job\" || resource == `cronjobs`\n"
	if got, want := kindsNamed(source), []string{`"Job"`, "`cronjobs`"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// kindsNamed are the texts of a source file that are a kind, or its name as it is typed. Of pods only the kind counts:
// they are more than workloads, in log lines and in what clients ask for.
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

// TestWatchedKindsMayBeRead: an informer of a kind that the role does not name never fills, and the manager never gets
// ready.
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
			t.Errorf("%s does not let memfit read %s of group %q", file, k.Resource, k.Group)
		}
	}
}
