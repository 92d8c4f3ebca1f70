// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// schema is what of a CRD decides whether older objects and older programs still fit.
type schema struct {
	Type       string
	Properties map[string]schema
	Items      *schema
	Required   []string
	Enum       []any
	MaxLength  *int64
	MaxItems   *int64
	Maximum    *float64
	Minimum    *float64
	Pattern    string
}

// broken lists what of an older schema a newer one takes back. Added fields and values are fine.
func broken(at string, older, newer schema) []string {
	var out []string
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, at+": "+fmt.Sprintf(format, args...))
		}
	}
	say(older.Type != newer.Type, "was of type %q, is %q", older.Type, newer.Type)
	say(older.Pattern != newer.Pattern, "was of the form %q, is %q", older.Pattern, newer.Pattern)
	say(newer.MaxLength != nil && (older.MaxLength == nil || *newer.MaxLength < *older.MaxLength), "must be shorter")
	say(newer.MaxItems != nil && (older.MaxItems == nil || *newer.MaxItems < *older.MaxItems), "must have fewer items")
	say(newer.Maximum != nil && (older.Maximum == nil || *newer.Maximum < *older.Maximum), "must be less")
	say(newer.Minimum != nil && (older.Minimum == nil || *newer.Minimum > *older.Minimum), "must be more")
	for _, field := range newer.Required {
		say(!slices.Contains(older.Required, field), "requires %s", field)
	}
	for _, value := range older.Enum {
		say(len(newer.Enum) > 0 && !slices.Contains(newer.Enum, value), "no longer takes %v", value)
	}
	say(len(older.Enum) == 0 && len(newer.Enum) > 0, "takes %v only", newer.Enum)
	for name, field := range older.Properties {
		if _, there := newer.Properties[name]; !there {
			out = append(out, at+"."+name+": is gone")
			continue
		}
		out = append(out, broken(at+"."+name, field, newer.Properties[name])...)
	}
	if older.Items != nil && newer.Items != nil {
		out = append(out, broken(at+"[]", *older.Items, *newer.Items)...)
	}
	slices.Sort(out)
	return out
}

// schemas is a CRD's schemas by version.
func schemas(t *testing.T, text []byte) map[string]schema {
	t.Helper()
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	found := map[string]schema{}
	for _, v := range crd.Spec.Versions {
		found[crd.Spec.Names.Kind+" "+v.Name] = v.Schema.OpenAPIV3Schema
	}
	if len(found) == 0 {
		t.Fatalf("no schema in %.100s", text)
	}
	return found
}

// TestCRDsTakeWhatTheyTook: objects and programs of the latest tag fit the CRDs of the tree. Without a tag each CRD is
// compared with itself, which shows that it can be read, and with itself less a field, which shows that the comparison
// sees it.
func TestCRDsTakeWhatTheyTook(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d CRDs, want 5: %v", len(files), err)
	}
	tag := ""
	if out, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match=v*").Output(); err == nil {
		tag = strings.TrimSpace(string(out))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		newer := schemas(t, text)
		older := newer
		if tag != "" {
			was, err := exec.Command("git", "show", tag+":config/crd/bases/"+filepath.Base(file)).Output()
			if err != nil {
				continue // the kind is new
			}
			older = schemas(t, was)
		}
		for version, s := range older {
			for _, what := range broken(version, s, newer[version]) {
				t.Errorf("since %s: %s. Announce it under Deprecated one release earlier (docs/guide/upgrading.md)", tag, what)
			}
			less := s
			less.Properties = map[string]schema{}
			if got := broken(version, s, less); len(got) != len(s.Properties) || len(got) == 0 {
				t.Errorf("%s without its fields: %v", version, got)
			}
		}
	}
}

func TestBroken(t *testing.T) {
	bound := func(n int64) *int64 { return &n }
	older := schema{
		Type: "object", Required: []string{"a"}, Properties: map[string]schema{
			"a": {Type: "string", Enum: []any{"X", "Y"}},
			"b": {Type: "array", MaxItems: bound(3), Items: &schema{Type: "string", MaxLength: bound(9)}},
			"c": {Type: "integer"},
		},
	}
	newer := schema{
		Type: "object", Required: []string{"a", "d"}, Properties: map[string]schema{
			"a": {Type: "string", Enum: []any{"X", "Z"}},
			"b": {Type: "array", MaxItems: bound(4), Items: &schema{Type: "string", MaxLength: bound(8)}},
			"d": {Type: "string"},
		},
	}
	want := []string{".a: no longer takes Y", ".b[]: must be shorter", ".c: is gone", ": requires d"}
	got := broken("", older, newer)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	older.Required = []string{"a", "b"}
	if got := broken("", older, older); len(got) != 0 {
		t.Errorf("compared with itself: %v", got)
	}
}
