// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Stall describes a stall in one line: "Container app stalls at its limit of 256Mi since 08:20:13Z: 235Mi of
// 256Mi anonymous, ...".
func Stall(s *memory.Stall) string {
	head := fmt.Sprintf(
		"Container %s stalls at its limit of %s since %s", s.Container.Container, s.Limit, format.Time(s.Since),
	)
	if !s.Ended.IsZero() {
		head = fmt.Sprintf("Container %s stalled at its limit of %s from %s to %s",
			s.Container.Container, s.Limit, format.Time(s.Since), format.Time(s.Ended))
	}
	words := head + ": " + s.Why()
	switch {
	case s.NotRelieved && s.Faults == 0:
		words += fmt.Sprintf("; raising the limit from %s to %s did not reduce memory pressure: memory is not the "+
			"bottleneck", s.Limit, s.RaisedTo)
	case s.NotRelieved:
		words += fmt.Sprintf("; raising the limit from %s to %s did not reduce major faults (%d a second before, %d after): "+
			"memory is not the bottleneck",
			s.Limit, s.RaisedTo, s.Faults, s.FaultsAfter)
	case s.RaisedTo > 0 && !s.Ended.IsZero():
		words += fmt.Sprintf("; ended after the raise to %s (%d major faults a second)", s.RaisedTo, s.FaultsAfter)
	case s.RaisedTo > 0:
		words += "; raised to " + s.RaisedTo.String()
	}
	if s.Account != "" {
		words += "; " + s.Account
	}
	return words
}
