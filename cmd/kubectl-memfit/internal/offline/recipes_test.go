// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

var update = flag.Bool("update", false, "write anew what docs/guide/recipes.md says that memfit sets")

// recipe is a block of YAML and the transcript below it.
var recipe = regexp.MustCompile(
	"(?s)```yaml\n(.*?)```\n\n```\n(\\$ kubectl memfit inject -f [a-z-]+\\.yaml)\n(.*?)```\n",
)

// TestRecipes gives every recipe of docs/guide/recipes.md to kubectl memfit inject and compares what it says with
// the page.
func TestRecipes(t *testing.T) {
	const path = "../../../../docs/guide/recipes.md"
	page := read(t, path)
	blocks, recipes := bytes.Count(page, []byte("```yaml\n")), len(recipe.FindAll(page, -1))
	if recipes < 8 || recipes != blocks {
		t.Fatalf("%d blocks of YAML, %d of them with a transcript below; want at least 8, and one for each", blocks, recipes)
	}
	fresh := recipe.ReplaceAllFunc(page, func(match []byte) []byte {
		parts := recipe.FindSubmatch(match)
		manifests, command, want := parts[1], string(parts[2]), string(parts[3])
		r, err := Inject(manifests, Options{Namespace: "default"})
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		strict(t, command, manifests)
		if len(r.Problems) > 0 {
			t.Errorf("%s: %v", command, r.Problems)
		}
		got := strings.Join(r.Notes, "\n") + "\n"
		if got != want && !*update {
			t.Errorf("%s (-page +inject; go test -update accepts it):\n%s", command, cmp.Diff(want, got))
		}
		return fmt.Appendf(nil, "```yaml\n%s```\n\n```\n%s\n%s```\n", manifests, command, got)
	})
	if *update {
		if err := os.WriteFile(path, fresh, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// strict fails for fields that a kind does not have. inject lets them pass in workloads.
func strict(t *testing.T, command string, manifests []byte) {
	t.Helper()
	for _, d := range split(manifests) {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(d.raw, &kind); err != nil {
			t.Fatal(err)
		}
		into := map[string]any{
			"MemoryProfile": &v1alpha1.MemoryProfile{}, "Deployment": &appsv1.Deployment{},
			"StatefulSet": &appsv1.StatefulSet{}, "CronJob": &batchv1.CronJob{},
		}[kind.Kind]
		if into == nil {
			t.Errorf("%s: kind %q, which this test does not know", command, kind.Kind)
			continue
		}
		if err := yaml.UnmarshalStrict(d.raw, into); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
