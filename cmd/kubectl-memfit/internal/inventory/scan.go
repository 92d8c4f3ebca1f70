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

// Workload is an item of `kubectl memfit scan -o json`: a container, with the numbers of the replica that uses most.
type Workload struct {
	Container `json:",inline"`

	// Replicas is the number of pods.
	Replicas int `json:"replicas"`
	// Kills counts the known OOM kills of the last KillDays. Without a recommendation, only the last of each pod is known.
	Kills int `json:"kills"`
}

// KillDays is the number of days for which Kills counts.
const KillDays = 7

// Workloads merges the replicas of each container. It sorts by kills, then by use as a share of the limit.
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

// add adds a replica. It keeps the numbers of the replica that uses most, and prefers a runtime from the agent.
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
	if c.sortKey("use") > w.sortKey("use") {
		w.Pod, w.Node, w.Use, w.UseFrom, w.Limit, w.Parts, w.Missing = c.Pod, c.Node, c.Use, c.UseFrom, c.Limit, c.Parts,
			c.Missing
	}
}

// recorded counts the kills of the container that the recommendation records since a time.
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
func WriteScan(out io.Writer, all []Workload, o listing.Options) error {
	l := listing.List{Kind: "WorkloadInventoryList", Columns: scanColumns, Wide: scanWide}
	containers := make([]Container, 0, len(all))
	for i := range all {
		w := &all[i]
		containers = append(containers, w.Container)
		l.Items = append(l.Items, listing.Item{
			Object: w, Namespace: w.Namespace, Name: w.resource(),
			Cells: []string{
				w.typed(), w.Name, fmt.Sprint(w.Replicas), w.Runtime.String(), w.use(), size(w.Limit), w.killed(), w.Profile,
				w.Runtime.evidence(), w.Pod,
			},
		})
	}
	l.Notes = killNote(all) + missing(containers)
	return l.Print(out, o)
}

// WorkloadOrders are the sort keys of workloads; the first is the default.
var WorkloadOrders = []string{"kills", "use", "share", "name"}

// SortWorkloads sorts by kills, use or share, the largest first, or by name.
func SortWorkloads(all []Workload, by string) {
	slices.SortStableFunc(all, func(a, b Workload) int {
		order := cmp.Compare(b.sortKey(by), a.sortKey(by))
		if by == "kills" {
			order = cmp.Or(cmp.Compare(b.Kills, a.Kills), cmp.Compare(b.sortKey("share"), a.sortKey("share")))
		}
		return cmp.Or(
			order, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.NodeClass, b.NodeClass), cmp.Compare(a.Name, b.Name),
		)
	})
}

// resource returns a workload in the form of kubectl -o name: "deployment.apps/web".
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
	return fmt.Sprintf("KILLS counts the known kills of the last %d days. Workloads without a profile may have had more, "+
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
