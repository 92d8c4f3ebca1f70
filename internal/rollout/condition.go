// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// condition returns the reason and message of the condition Applied.
func (d *decider) condition() (upToDate bool, reason, message string) {
	if reason, message = d.describeWaiting(); reason != "" {
		return false, reason, message
	}
	switch {
	case len(d.pods) == 0:
		return false, v1alpha1.ReasonWaitingForNewPods, "No running pods"
	case d.State.ConflictingWriter != nil:
		return false, v1alpha1.ReasonConflict, d.withCount(d.State.ConflictingWriter.Why)
	}
	if reason, message = d.describeStep(); reason != "" {
		return false, reason, message
	}
	switch {
	case d.State.Rollout.Decrease && len(d.State.Steps) > 0:
		return len(d.toChange) == 0, v1alpha1.ReasonWatching, d.describeWatch()
	case d.reason == v1alpha1.ReasonUpToDate || len(d.toChange) == 0:
		return true, v1alpha1.ReasonUpToDate, "Every running pod has the recommended size" + d.loanNote()
	case d.reason != "":
		return false, d.reason, d.withCount(d.message)
	}
	return false, v1alpha1.ReasonApplying, d.withCount("waiting for its turn")
}

// describeStep describes the oldest step that is not effective, with the kubelet's message; empty: all steps are.
func (d *decider) describeStep() (reason, message string) {
	for _, st := range d.State.Steps {
		if st.Phase == Watching {
			continue
		}
		pod, how := d.pods[st.UID], "is resized in place"
		if st.evicts() {
			how = "is evicted and replaced"
		}
		reason, message = v1alpha1.ReasonApplying, fmt.Sprintf(
			"Pod %s %s: %s, begun at %s", st.Pod, how, st.describe(), format.Time(st.At),
		)
		switch {
		case st.Phase == Undoing:
			message = fmt.Sprintf("Pod %s: %s did not take effect and is rolled back", st.Pod, changes(st.From, st.To))
			if r, refused := d.State.refusal(st.UID); refused {
				reason, message = r.Reason, message+": "+r.Why
			}
		case pod == nil || st.evicts():
		case pod.has(st.To, actual) && !pod.Resize.InProgress && !pod.Resize.Deferred:
			reason, message = v1alpha1.ReasonApplying, message+d.ineffectiveWords(&st, pod)
		case pod.Resize.Deferred:
			reason = v1alpha1.ReasonDeferred
			message += "; the kubelet waits for free memory on the node: " + pod.Resize.Message
		case pod.Resize.Failed:
			reason, message = v1alpha1.ReasonResizeFailed, message+"; the kubelet reports: "+pod.Resize.Message+failedWords(&st)
		case !pod.Resize.InProgress:
			reason, message = v1alpha1.ReasonApplying, message+d.endedWords(&st, pod)
		}
		return reason, d.withCount(message)
	}
	return "", ""
}

// ineffectiveWords describes a resize that the container's status shows and that is not proven to be effective.
func (d *decider) ineffectiveWords(st *Step, pod *Pod) string {
	c, ineffective := pod.ineffective(st.To)
	if !ineffective {
		return "; the kubelet reports the new size, and memfit waits until the container has run with it for a moment"
	}
	return "; the pod's cgroup still has the old limit (kubernetes/kubernetes#138760), and memfit requests the resize " +
		"again when the container runs" + d.insteadOfWaiting(st, pod, c)
}

// endedWords describes a container that ended before the kubelet had reported a resize; empty: there is none.
func (d *decider) endedWords(st *Step, pod *Pod) string {
	c, ended := pod.first(st.To, func(c Container) bool {
		return c.Started.IsZero() && !pod.has(map[string]memory.Size{c.Name: st.To[c.Name]}, actual)
	})
	if !ended {
		return ""
	}
	return "; container " + c.Name + " ended before the kubelet had reported the resize: memfit checks again when the " +
		"container runs" + d.insteadOfWaiting(st, pod, c)
}

// insteadOfWaiting returns what users can do if a container ends within moments of its start, because a resize reaches
// it only by chance; empty: nothing, or the limit is lowered.
func (d *decider) insteadOfWaiting(st *Step, pod *Pod, c Container) string {
	remedy := d.remedy(pod, st.To[c.Name].Limit)
	if !c.EndedEarly || remedy == "" || lowersAny(st.From, st.To) {
		return ""
	}
	return fmt.Sprintf("; container %s ends within moments of its start: if you cannot wait, %s", c.Name, remedy)
}

// failedWords describes what happens after a failed resize. For a lower limit, it also explains the kubelet's message,
// which only contains an outdated use of the whole pod.
func failedWords(st *Step) string {
	until := format.Time(st.Request.At.Add(resizeTimeout))
	if !lowersAny(st.From, st.To) {
		return "; the kubelet retries, until memfit rolls the resize back at " + until
	}
	return "; the kubelet lowers no limit below the memory in use, page cache included: the higher limit remains " +
		"effective, and the kubelet retries, until memfit rolls the resize back at " + until
}

// describeWatch describes the pods that are watched with a lower limit, and calls requeueIn for the end of the watch.
func (d *decider) describeWatch() string {
	last := d.State.Steps[len(d.State.Steps)-1]
	until := last.Watch.Since.Add(d.Policy.Watch)
	who := "Pod " + last.Pod
	if d.State.Rollout.Completed == 0 && len(d.toChange) > 0 {
		who += ", the first of " + fmt.Sprint(len(d.pods)) + ","
	}
	d.requeueIn(max(until.Sub(d.Now), time.Second))
	text := fmt.Sprintf(
		"%s is watched for kills and restarts until %s: %s", who, format.Time(until), changes(last.From, last.To),
	)
	if n := len(d.State.Steps) - 1; n > 0 {
		text += fmt.Sprintf("; %d more pods are watched", n)
	}
	if why := cmp.Or(d.QueryResult.Against(d.Now), d.unseen(&last)); why != "" {
		text += "; " + why
	}
	return d.withCount(text)
}

// withCount appends the number of pods whose recommended size is effective.
func (d *decider) withCount(text string) string {
	if len(d.pods) <= 1 {
		return text
	}
	have := 0
	for _, pod := range d.pods {
		if st, begun := d.State.step(pod.UID); (!begun || st.Phase == Watching) && !d.needsChange(pod) {
			have++
		}
	}
	return fmt.Sprintf("%s (%d of %d pods have the recommended size)", text, have, len(d.pods))
}
