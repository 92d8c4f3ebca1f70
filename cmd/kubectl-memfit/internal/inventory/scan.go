// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Workload is a container of all replicas of a workload, with the numbers of the fullest one. -o json and -o yaml of
// `kubectl memfit scan` print these fields.
type Workload struct {
	Container `json:",inline"`

	// Replicas are the pods that run.
	Replicas int `json:"replicas"`
	// Kills are the OOM kills of the last days that are known. Without a recommendation pods tell of the last kill of each
	// container only, so that there may have been more.
	Kills int `json:"kills"`
}

// KillDays is how far back kills count.
const KillDays = 7

// Workloads are the containers by workload, those with kills first, then the fullest.
func Workloads(all []Container, recs []v1alpha1.MemoryRecommendation, now time.Time) []Workload {
	index := map[[4]string]int{}
	var out []Workload
	since := now.Add(-KillDays * 24 * time.Hour)
	for i := range all {
		c := &all[i]
		key := [4]string{c.Namespace, c.Kind, c.Workload, c.Name}
		at, ok := index[key]
		if !ok {
			at = len(out)
			index[key] = at
			out = append(out, Workload{Container: *c})
			out[at].LastKill, out[at].kills = nil, 0
		}
		out[at].add(c, since)
	}
	known := byWorkload(recs)
	for i := range out {
		w := &out[i]
		w.Kills = max(w.kills, recorded(known[workloadKey{w.Namespace, w.Kind, w.Workload}], w.Name, since))
	}
	slices.SortStableFunc(out, func(a, b Workload) int {
		return cmp.Or(
			cmp.Compare(b.Kills, a.Kills), cmp.Compare(b.size("share"), a.size("share")), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Name, b.Name),
		)
	})
	return out
}

// add takes another replica: the numbers of the fullest stay, and the surest answer to what runs.
func (w *Workload) add(c *Container, since time.Time) {
	w.Replicas++
	if at := c.LastKill; at != nil && at.After(since) {
		w.kills += c.kills
		if w.LastKill == nil || at.After(w.LastKill.Time) {
			w.LastKill = at
		}
	}
	runtime := w.Runtime
	if runtime.From != FromAgent && c.Runtime.From == FromAgent {
		runtime = c.Runtime
	}
	if c.size("use") > w.size("use") {
		w.Pod, w.Node, w.Use, w.UseFrom, w.Limit, w.Parts, w.Missing = c.Pod, c.Node, c.Use, c.UseFrom, c.Limit, c.Parts,
			c.Missing
	}
	w.Runtime = runtime
}

// recorded counts the kills of a container that memfit has written down.
func recorded(rec *v1alpha1.MemoryRecommendation, container string, since time.Time) (n int) {
	if rec == nil {
		return 0
	}
	for i := range rec.Status.RecentOOMKills {
		k := &rec.Status.RecentOOMKills[i]
		if k.Container == container && k.Time.After(since) {
			n++
		}
	}
	return n
}

// WriteScan prints a line for each container of each workload.
func WriteScan(w io.Writer, all []Workload, t Table) error {
	rows := [][]string{{"WORKLOAD", "CONTAINER", "PODS", "RUNTIME", "USE", "LIMIT", "KILLS", "PROFILE", "EVIDENCE"}}
	if t.Namespaces {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
	}
	containers := make([]Container, 0, len(all))
	for i := range all {
		o := &all[i]
		containers = append(containers, o.Container)
		row := []string{
			o.typed(), o.Name, fmt.Sprint(o.Replicas), o.Runtime.String(), o.use(), size(o.Limit), o.killed(),
			cmp.Or(o.Profile, "-"), o.Runtime.evidence(),
		}
		if t.Namespaces {
			row = append([]string{o.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return t.write(w, rows, killNote(all)+missing(containers))
}

func (w *Workload) typed() string { return workloadkind.Typed(w.Kind, w.Workload) }

func (w *Workload) killed() string {
	if w.Kills == 0 {
		return "0"
	}
	if w.LastKill == nil {
		return fmt.Sprint(w.Kills)
	}
	return fmt.Sprintf("%d, %s", w.Kills, format.Time(w.LastKill.Time))
}

func killNote(all []Workload) string {
	if !slices.ContainsFunc(all, func(w Workload) bool { return w.Kills > 0 }) {
		return ""
	}
	return fmt.Sprintf("Kills are those of the last %d days that are known. A pod reports the last kill of each "+
		"container only: where no profile governs a workload, there may have been more\n", KillDays)
}

// evidence is how that is known, in a few words.
func (r Runtime) evidence() string {
	if len(r.Evidence) == 0 {
		return "-"
	}
	if r.From == FromAgent {
		return "agent: " + r.Evidence[0]
	}
	return strings.Join(r.Evidence, ", ")
}
