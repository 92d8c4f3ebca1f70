// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"github.com/memfit/memfit/internal/history"
)

// FromHistory is what a history still knows, as evidence for [Classify]: the last two hours instance by instance, and
// the spans of the last days for the fullest. The caller adds the limit, the runtime's cap, the running replicas and
// the time.
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
	spans := h.AppendSpans(nil)
	in.Past = make([]Span, 0, len(spans))
	for _, s := range spans {
		in.Past = append(
			in.Past, Span{Start: s.Start, Length: s.Length, Low: s.Low, Usual: s.Usual, Peak: s.Peak, Another: s.Another},
		)
	}
	now, before := h.Regimes()
	in.Regimes = []Regime{{now.Limit, now.Peak}, {before.Limit, before.Peak}}
	return in
}
