// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "fmt"

// Size is the memory request and limit of a container or a pod, wherever one is decided on; 0: not set.
type Size struct{ Request, Limit Bytes }

// String is the size as reasons show it.
func (s Size) String() string { return fmt.Sprintf("request %s, limit %s", s.Request, s.Limit) }

// Plus is both together.
func (s Size) Plus(t Size) Size {
	return Size{Request: s.Request.Plus(t.Request), Limit: s.Limit.Plus(t.Limit)}
}

// Max has the larger request and the larger limit of both.
func (s Size) Max(t Size) Size {
	return Size{Request: max(s.Request, t.Request), Limit: max(s.Limit, t.Limit)}
}
