// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "fmt"

// Size is the memory request and limit of a container or a pod; 0: not set.
type Size struct{ Request, Limit Bytes }

// String formats the size for reasons.
func (s Size) String() string { return fmt.Sprintf("request %s, limit %s", s.Request, s.Limit) }

// Plus adds the requests and the limits.
func (s Size) Plus(t Size) Size {
	return Size{Request: s.Request.Plus(t.Request), Limit: s.Limit.Plus(t.Limit)}
}

// Max returns the larger of the requests and the larger of the limits.
func (s Size) Max(t Size) Size {
	return Size{Request: max(s.Request, t.Request), Limit: max(s.Limit, t.Limit)}
}
