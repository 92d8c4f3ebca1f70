// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package newruntime

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memfit/memfit/test/expect"
)

const pairs = "internal/inject/testdata"

// TestARuntimeIsOneFileAndItsGoldenPairs adds the synthetic runtime Brook as CONTRIBUTING.md describes.
func TestARuntimeIsOneFileAndItsGoldenPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("builds parts of memfit in a copy of the repository")
	}
	c := copyTree(t)
	c.add(t, "brook.go", "internal/runtimes/brook.go")
	c.add(t, "brook", pairs+"/brook")

	t.Run("missing generated files are reported", func(t *testing.T) {
		out, err := c.run(t, "go", "test", "./test/arch", "-run", "TheAPIKnows")
		if err == nil || !strings.Contains(out, "make generate manifests") || !strings.Contains(out, "Brook") {
			t.Errorf("error %v, want a failure with Brook and the make targets to run:\n%s", err, out)
		}
	})
	c.must(t, "make", "generate", "crds")
	c.must(t, "go", "test", "./hack/reference", "-run", "^TestReference$", "-update") // part of make reference
	t.Run("the tests of the table pass", func(t *testing.T) {
		c.must(t, "go", "test", "./internal/runtimes", "./hack/runtimetable")
		c.must(t, "go", "test", "./test/arch", "-run", "TheAPIKnows|Variants|OneFile|Headers|Links")
	})
	t.Run("the webhook injects its settings", func(t *testing.T) { checkInjection(t, c) })
	t.Run("memfit advises, classifies and validates", func(t *testing.T) { checkProbe(t, c) })
	t.Run("it is documented", func(t *testing.T) { checkDocs(t, c) })
	t.Run("an API server accepts it", func(t *testing.T) { checkAPIServer(t, c) })
}

// checkInjection checks Brook's golden pairs, also offline, and that the golden pods of other runtimes are unchanged.
func checkInjection(t *testing.T, c tree) {
	c.must(t, "go", "test", "./internal/inject", "-run", "TestGolden$/brook")
	c.must(t, "go", "test", "./cmd/kubectl-memfit/internal/offline", "-run", "TestGoldenPairsOfInject/brook")
	c.must(t, "go", "test", "./internal/inject", "-run", "TestGolden$", "-update")
	for _, file := range outputs(t, os.DirFS("../../"+pairs)) {
		before, err := os.ReadFile(filepath.Join("../..", pairs, file))
		if err != nil {
			t.Fatal(err)
		}
		// One message lists all runtimes: "write one of Auto, NodeJS, ...".
		after := strings.Replace(c.read(t, path.Join(pairs, file)), ", Brook, ", ", ", 1)
		if diff := cmp.Diff(string(before), after); diff != "" {
			t.Errorf("a new runtime changes %s (-before +after):\n%s", file, diff)
		}
	}
}

// outputs returns the golden pods below dir.
func outputs(t *testing.T, dir fs.FS) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.injected", "*/*.injected"} {
		files, err := fs.Glob(dir, pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	if len(found) < 100 {
		t.Fatalf("%d golden pods, want at least 100", len(found))
	}
	return found
}

// checkProbe checks all other decisions that depend on the runtime. testdata/probe prints them.
func checkProbe(t *testing.T, c tree) {
	var got map[string]any
	text := c.must(t, "go", "run", "./test/newruntime/testdata/probe")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	want := map[string]any{
		"annotation": "Brook",
		"refused": []any{
			"spec.tuning.heapLimit: 256Mi is not for Brook, whose page size depends on the machine: use heapPercent",
		},
		"by command": "Brook",
		"settings":   []any{"BROOK_OPTIONS: --heap-bytes=375809638 (70 % of 512Mi)"},
		"growth": map[string]any{
			"FollowsLimit": true, "MayFollow": false, "HeapPercent": 70.0, "Soft": false, "Overhead": float64(24 << 20),
			"Reserve": 0.0, "Name": "Brook", "OwnHeap": 0.0, "OwnHeapBy": "",
		},
		"skipped": []any{"--heap-bytes skipped: Brook before 2 does not read it"},
		"advice": []any{
			"Brook gives memory back at its checkpoints only: take one every hour",
			"Brook before 2 does not read BROOK_OPTIONS: upgrade",
		},
		"advisories":         []any{"Brook before 2 does not read BROOK_OPTIONS: upgrade"},
		"exit 99":            "HeapAbort",
		"exit 99 of another": "",
		"log":                "HeapAbort",
		"OOM advice": "the runtime's own heap cap was reached, not the limit: raise --heap-bytes (heapPercent in the " +
			"profile); " +
			"raise the limit only if RSS is close to it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("memfit's results for Brook (-want +got):\n%s", diff)
	}
}

func checkDocs(t *testing.T, c tree) {
	page := c.read(t, "docs/reference/runtimes.md")
	for _, row := range []string{
		"| Brook | `Brook` | `brook`, `brookd` | `--heap-bytes` | `MALLOC_ARENA_MAX`, `MALLOC_TRIM_THRESHOLD_` |",
		"| Brook | 99 | `brook: the heap is full` | raise --heap-bytes (heapPercent in the profile) |",
	} {
		if !strings.Contains(page, "\n"+row+"\n") {
			t.Errorf("docs/reference/runtimes.md lacks the row %s", row)
		}
	}
}

// checkAPIServer checks that the CRDs of the copy accept Brook and its setting, and refuse an unknown runtime.
func checkAPIServer(t *testing.T, c tree) {
	config := expect.APIServer(t, func(e *envtest.Environment) {
		e.CRDDirectoryPaths = []string{filepath.Join(c.dir, "config/crd/bases")}
	})
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for runtime, want := range map[string]string{"Brook": "", "Creek": `Unsupported value: "Creek"`} {
		err := api.Create(t.Context(), profile(runtime))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a profile for %s: error %v, want %q", runtime, err, want)
		}
	}
}

func profile(runtime string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "memfit.dev/v1alpha1", "kind": "MemoryProfile",
		"metadata": map[string]any{"name": strings.ToLower(runtime), "namespace": "default"},
		"spec": map[string]any{
			"runtime": map[string]any{"type": runtime},
			"tuning":  map[string]any{"conflictPolicy": "Replace", "replace": []any{"--heap-bytes", "GOMEMLIMIT"}},
		},
	}}
}
