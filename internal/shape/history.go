// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"github.com/memfit/memfit/internal/history"
)

// FromHistory returns a history as evidence for [Classify]: the last two hours by instance, and the spans of the last
// days of the fullest. The caller adds the limit, the runtime's cap and the running replicas.
func FromHistory(h *history.Container) Input {
	var in Input
	if h == nil {
		return in
	}
	at := map[int]int{}
	for _, p := range h.Recent() {
		i, found := at[p.Instance]
		if !found {
			i = len(in.Instances)
			at[p.Instance] = i
			in.Instances = append(in.Instances, Instance{})
		}
		in.Instances[i].Points = append(in.Instances[i].Points, Point{Time: p.Time, RSS: p.Demand})
	}
	in.Past = h.AppendSpans(nil)
	now, before := h.Regimes()
	in.Regimes = []history.Regime{now, before}
	return in
}
