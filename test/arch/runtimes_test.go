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

	"github.com/memfit/memfit/internal/runtimes"
)

// TestTheAPIKnowsWhatTheTableKnows checks that the enums of the CRDs for runtimes, variants and settings equal the
// table of internal/runtimes.
func TestTheAPIKnowsWhatTheTableKnows(t *testing.T) {
	want := tableEnums()
	for _, file := range []string{
		"config/crd/bases/memfit.dev_memoryprofiles.yaml", "config/crd/bases/memfit.dev_clustermemoryprofiles.yaml",
	} {
		var crd map[string]any
		if err := yaml.Unmarshal(read(t, file), &crd); err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		eachSchema(crd, "", func(at string, schema map[string]any) {
			for field, names := range want {
				if !strings.HasSuffix(at, field) {
					continue
				}
				found[field]++
				if got := texts(schema["enum"]); !slices.Equal(got, names) {
					t.Errorf("%s: %s may be %q, but internal/runtimes has %q: make generate manifests", file, at, got, names)
				}
			}
		})
		for field := range want {
			if found[field] < 2 { // one for all containers, one for a single container
				t.Errorf("%s has %s in %d places, want at least 2: this test searches the wrong field", file, field, found[field])
			}
		}
	}
}

// tableEnums returns the values that the table allows by API field.
func tableEnums() map[string][]string {
	var names, variants, settings []string
	for _, r := range runtimes.All() {
		names, variants = append(names, r.Name), append(variants, r.Variants...)
		for _, k := range r.Knobs {
			if !slices.Contains(settings, k.Name) {
				settings = append(settings, k.Name)
			}
		}
	}
	return map[string][]string{".runtime.type": names, ".runtime.variant": variants, ".tuning.replace[]": settings}
}

// eachSchema calls visit for each schema below node with the path of its field.
func eachSchema(node any, at string, visit func(at string, schema map[string]any)) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			eachSchema(item, at, visit)
		}
	case map[string]any:
		visit(at, n)
		for key, below := range n {
			switch fields, isMap := below.(map[string]any); {
			case key == "properties" && isMap:
				for name, schema := range fields {
					eachSchema(schema, at+"."+name, visit)
				}
			case key == "items":
				eachSchema(below, at+"[]", visit)
			default:
				eachSchema(below, at, visit)
			}
		}
	}
}

func texts(list any) (out []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// TestVariantsBelongToTheirRuntimes checks that the handwritten CEL rule of the API names the runtimes with variants.
func TestVariantsBelongToTheirRuntimes(t *testing.T) {
	var types []string
	for _, r := range runtimes.All() {
		if len(r.Variants) > 0 {
			types = append(types, "self.type == '"+r.Name+"'")
		}
	}
	rule := `rule="!has(self.variant) || ` + strings.Join(types, " || ") + `"`
	const file = "api/v1alpha1/memoryprofile_types.go"
	if !strings.Contains(string(read(t, file)), rule) {
		t.Errorf("%s: RuntimeSpec needs the marker +kubebuilder:validation:XValidation with %s, "+
			"because these runtimes have Variants in internal/runtimes", file, rule)
	}
}

// TestARuntimeIsOneFile checks that each file adds at most one runtime. Code that several share has files of its own.
func TestARuntimeIsOneFile(t *testing.T) {
	for _, f := range goFiles(t) {
		if path.Dir(f) != "internal/runtimes" || strings.HasSuffix(f, "_test.go") {
			continue
		}
		if n := strings.Count(string(read(t, f)), "= row(&Runtime{"); n > 1 {
			t.Errorf("%s adds %d runtimes: move each to a file of its own", f, n)
		}
	}
}

// TestNobodyElseAsksForARuntime checks that only internal/runtimes names a runtime. Properties of a runtime are columns
// of its table: a developer who adds a runtime would miss an "if" on a runtime's name elsewhere.
func TestNobodyElseAsksForARuntime(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") || !shipped(f) || path.Dir(f) == "internal/runtimes" {
			continue
		}
		for _, name := range runtimesNamed(string(read(t, f))) {
			t.Errorf("%s names %s: add a column to the table in internal/runtimes and use the column", f, name)
		}
	}
	const source = "package p\n\n// NodeJS\nvar a = v1alpha1.RuntimeNodeJS == \"JVM\" || v1alpha1.RuntimeAuto == \"a " +
		"JVM\"\n"
	if got, want := runtimesNamed(source), []string{"RuntimeNodeJS", `"JVM"`}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// shipped reports whether the manager, the agent or the kubectl plugin is built from a file.
func shipped(file string) bool {
	top, _, _ := strings.Cut(file, "/")
	return slices.Contains([]string{"cmd", "controllers", "internal", "webhooks"}, top)
}

// runtimesNamed returns the constants and string literals of a source file that name a runtime. Auto is not a runtime.
func runtimesNamed(source string) (found []string) {
	var names []string
	for _, r := range runtimes.All() {
		if r.Name != "Auto" {
			names = append(names, "Runtime"+r.Name, `"`+r.Name+`"`)
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
		if slices.Contains(names, text) {
			found = append(found, text)
		}
	}
}
