// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/memfit/memfit/internal/format"
)

// outsideWindows returns that no window is open; empty: one is, or there are none.
func (d *decider) outsideWindows() string {
	open, next := d.Policy.Windows.Open(d.Now)
	switch {
	case open:
		return ""
	case next.IsZero():
		return "none of the maintenance windows ever opens: see the profile's condition Ready"
	}
	d.requeueIn(next.Sub(d.Now) + time.Second)
	return "waits for the next maintenance window, which opens at " + format.Time(next)
}
