// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memfit/memfit/test/tree"
)

// TestReference checks the pages that do not depend on a program's flags or metrics.
func TestReference(t *testing.T) {
	Check(t, "runtimes.md", "internal/runtimes", Runtimes(read(t, "docs/guide/runtimes.md")))
	keys, reasons := read(t, "api/v1alpha1/keys.go"), read(t, "api/v1alpha1/reasons.go")
	page, err := Conditions(keys, reasons)
	if err != nil {
		t.Fatal(err)
	}
	Check(t, "conditions.md", "the comments of api/v1alpha1/keys.go and reasons.go", page)
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(tree.Root(), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
