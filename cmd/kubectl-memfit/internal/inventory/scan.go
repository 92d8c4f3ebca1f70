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

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Workload is a container of all replicas, with the numbers of the fullest. `kubectl memfit scan -o json` prints it.
type Workload struct {
	Container `json:",inline"`

	// Replicas are the pods that run.
	Replicas int `json:"replicas"`
	// Kills are the known OOM kills of the last days; without a recommendation the last one of each pod.
	Kills int `json:"kills"`
}

// KillDays is how far back kills count.
const KillDays = 7

// Workloads returns the containers by workload, those with kills first, then the fullest.
func Workloads(all []Container, now time.Time) []Workload {
	index := map[[6]string]int{}
	var out []Workload
	since := now.Add(-KillDays * 24 * time.Hour)
	for i := range all {
		c := &all[i]
		key := [6]string{c.Namespace, c.group, c.Kind, c.Workload, c.NodeClass, c.Name}
		at, ok := index[key]
		if !ok {
			at = len(out)
			index[key] = at
			out = append(out, Workload{Container: *c})
			out[at].LastKill, out[at].kills = nil, 0
		}
		out[at].add(c, since)
	}
	for i := range out {
		out[i].Kills = max(out[i].kills, out[i].recorded(since))
	}
	SortWorkloads(out, WorkloadOrders[0])
	return out
}

// add adds a replica: it keeps the numbers of the fullest, and the most certain runtime.
func (w *Workload) add(c *Container, since time.Time) {
	w.Replicas++
	if at := c.LastKill; at != nil && at.After(since) {
		w.kills += c.kills
		if w.LastKill == nil || at.After(w.LastKill.Time) {
			w.LastKill = at
		}
	}
	if w.Runtime.From != FromAgent && c.Runtime.From == FromAgent {
		w.Runtime = c.Runtime
	}
	if c.size("use") > w.size("use") {
		w.Pod, w.Node, w.Use, w.UseFrom, w.Limit, w.Parts, w.Missing = c.Pod, c.Node, c.Use, c.UseFrom, c.Limit, c.Parts,
			c.Missing
	}
}

func (w *Workload) recorded(since time.Time) (n int) {
	if w.rec == nil {
		return 0
	}
	for i := range w.rec.Status.RecentOOMKills {
		if k := &w.rec.Status.RecentOOMKills[i]; k.Container == w.Name && k.Time.After(since) {
			n++
		}
	}
	return n
}

var (
	scanColumns = []string{
		"WORKLOAD", "CONTAINER", "PODS", "RUNTIME", "USE", "LIMIT", "KILLS", "PROFILE", "EVIDENCE",
	}
	scanWide = []string{"FULLEST POD"}
)

// WriteScan prints a line for each container of each workload.
func WriteScan(w io.Writer, all []Workload, o listing.Options) error {
	l := listing.List{Kind: "WorkloadInventoryList", Columns: scanColumns, Wide: scanWide}
	containers := make([]Container, 0, len(all))
	for i := range all {
		f := &all[i]
		containers = append(containers, f.Container)
		l.Items = append(l.Items, listing.Item{
			Object: f, Namespace: f.Namespace, Name: f.resource(),
			Cells: []string{
				f.typed(), f.Name, fmt.Sprint(f.Replicas), f.Runtime.String(), f.use(), size(f.Limit), f.killed(), f.Profile,
				f.Runtime.evidence(), f.Pod,
			},
		})
	}
	l.Notes = killNote(all) + missing(containers)
	return l.Print(w, o)
}

// WorkloadOrders are the sort keys of workloads; the first is the default.
var WorkloadOrders = []string{"kills", "use", "share", "name"}

// SortWorkloads sorts by kills, use or share, the largest first, or by name.
func SortWorkloads(all []Workload, by string) {
	slices.SortStableFunc(all, func(a, b Workload) int {
		first := cmp.Compare(b.size(by), a.size(by))
		if by == WorkloadOrders[0] {
			first = cmp.Or(cmp.Compare(b.Kills, a.Kills), cmp.Compare(b.size("share"), a.size("share")))
		}
		return cmp.Or(
			first, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.NodeClass, b.NodeClass), cmp.Compare(a.Name, b.Name),
		)
	})
}

// resource returns a workload as kubectl -o name has it.
func (w *Workload) resource() string {
	kind := w.Kind
	if w.group != "" {
		kind += "." + w.group
	}
	return workloadkind.Typed(kind, w.Workload)
}

func (w *Workload) killed() string {
	if w.Kills == 0 || w.LastKill == nil {
		return fmt.Sprint(w.Kills)
	}
	return fmt.Sprintf("%d, %s", w.Kills, format.Time(w.LastKill.Time))
}

func killNote(all []Workload) string {
	if !slices.ContainsFunc(all, func(w Workload) bool { return w.Kills > 0 }) {
		return ""
	}
	return fmt.Sprintf("Kills are the known ones of the last %d days. Without a profile there may have been more, "+
		"because a pod reports only the last kill of each container\n", KillDays)
}

func (r Runtime) evidence() string {
	if len(r.Evidence) == 0 {
		return ""
	}
	if r.From == FromAgent {
		return "agent: " + r.Evidence[0]
	}
	return strings.Join(r.Evidence, ", ")
}
