// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Waiting is a pending pod for whose requests no node has memory, because memfit raised them.
type Waiting struct {
	Name         string
	UID          types.UID
	Since        time.Time
	Scheduler    string                 // the scheduler's message
	From         map[string]memory.Size // the current sizes of the containers with a raised request
	To           map[string]memory.Size // these sizes with the requests of the template
	NotResizable bool                   // a resize cannot restore the requests
	Completes    bool                   // as in [Pod]
	DoNotDisrupt string                 // as in [Pod]
}

// restoreRequests restores the template's requests in waiting pods: in place or, if that is impossible and the mode
// allows evictions, by new pods. The pods do not run, so only a conflict with another writer prevents it.
func (d *decider) restoreRequests() {
	if d.Conflict != "" || d.State.ConflictingWriter != nil {
		return
	}
	for i := range d.Waiting[:min(len(d.Waiting), maxWatched)] {
		w := &d.Waiting[i]
		evict, refused := d.evicts(w)
		if refused == (Verdict{}) {
			why := changes(w.From, w.To) + ": no node takes the pod"
			d.actions = append(d.actions, Action{Pod: w.Name, UID: w.UID, Evict: evict, Sizes: w.To, Why: why})
		}
		d.requeueIn(recheckAfter)
	}
}

// evicts reports whether a waiting pod is evicted because a resize is impossible, or why its requests are not restored.
func (d *decider) evicts(w *Waiting) (evict bool, refused Verdict) {
	r, found := d.State.refusal(w.UID)
	switch refused = (Verdict{r.Reason, r.Why}); {
	case !found && !w.NotResizable:
		return false, Verdict{}
	case !found:
		refused = Verdict{v1alpha1.ReasonUnschedulable, "a resize cannot remove a request, or change that of a whole pod"}
	}
	pod := &Pod{UID: w.UID, Completes: w.Completes, DoNotDisrupt: w.DoNotDisrupt}
	ch := &change{kind: rollBackByEviction, pod: pod, evict: true}
	if !d.Policy.Evict || d.notPermitted(ch) != (Verdict{}) {
		return false, refused
	}
	return true, cmp.Or(d.paused(ch), d.refusedRecently(ch))
}

// describeWaiting describes the first unschedulable pod; empty: none.
func (d *decider) describeWaiting() (reason, message string) {
	if len(d.Waiting) == 0 || d.Conflict != "" || d.State.ConflictingWriter != nil {
		return "", ""
	}
	w := &d.Waiting[0]
	message = fmt.Sprintf("Pod %s has been unschedulable since %s with the request that memfit set (%s)", w.Name,
		format.Time(w.Since), w.Scheduler)
	if n := len(d.Waiting) - 1; n > 0 {
		message += fmt.Sprintf(", and %d more", n)
	}
	switch evict, refused := d.evicts(w); {
	case refused != (Verdict{}):
		message += fmt.Sprintf("; the request is not restored (%s), because %s: delete the pod (kubectl delete pod %s "+
			"-n %s), and its successor gets its template's request", changes(w.From, w.To), refused.Message, w.Name, d.Namespace)
		return refused.Reason, message
	case evict:
		message += ": the pod is evicted, and its successor gets its template's request"
	default:
		message += ": the request is restored, " + changes(w.From, w.To)
	}
	return v1alpha1.ReasonUnschedulable, message
}
