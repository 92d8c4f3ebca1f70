// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import "context"

// Fallback asks a, and b for the nodes where a does not answer.
func Fallback(a, b Source) Source { return fallback{a, b} }

type fallback struct{ a, b Source }

func (f fallback) Name() string { return f.a.Name() }

func (f fallback) Read(ctx context.Context, node Node) (Reading, error) {
	r, err := f.a.Read(ctx, node)
	if err == nil {
		return r, nil
	}
	return f.b.Read(ctx, node)
}
