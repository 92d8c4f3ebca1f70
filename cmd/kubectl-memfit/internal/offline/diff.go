// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Diff is a unified diff per changed document. Both sides are written in one style, so that it shows what memfit
// changes and not how YAML can be written.
func (r *Result) Diff() ([]byte, error) {
	var out bytes.Buffer
	for _, d := range r.docs {
		if d.text == nil {
			continue
		}
		root, err := d.tree()
		if err != nil {
			return nil, err
		}
		before, err := d.encode(root)
		if err != nil {
			return nil, err
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(string(before))), B: slices.Collect(strings.Lines(string(d.text))),
			FromFile: d.title, ToFile: d.title + " with memfit", Context: 3,
		})
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", d.title, err)
		}
		out.WriteString(text)
	}
	return out.Bytes(), nil
}
