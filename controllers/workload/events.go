// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/workload"
)

// maxNote is what the API takes in a note, in bytes.
const maxNote = 1024

func (r *Reconciler) recordEvents(all []workload.Event) {
	for i := range all {
		r.recordEvent(all[i])
	}
}

func (r *Reconciler) recordEvent(e workload.Event) {
	if r.Recorder == nil {
		return
	}
	r.Recorder.Eventf(e.Regarding, e.Related, e.Kind, e.Reason, e.Action, "%s", quote.Cut(e.Note, maxNote))
}
