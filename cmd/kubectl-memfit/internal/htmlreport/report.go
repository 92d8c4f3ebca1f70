// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package htmlreport writes the HTML page of `kubectl memfit report` from recommendations and memory histories:
// workloads that need attention, charts of use, requests and limits, and kills, stalls and memfit's changes. The page
// has no scripts and loads no other files.
package htmlreport

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// Input is the input of a report.
type Input struct {
	// Place is the scope for users, such as "namespace shop of staging".
	Place string
	// Now is the time at which the cluster was read.
	Now time.Time
	// PricePerGiBMonth is the price of requested memory, in Currency; 0: the page has no costs.
	PricePerGiBMonth float64
	Currency         string
	Recommendations  []v1alpha1.MemoryRecommendation
	// Histories has histories by recommendation and container. Unreadable histories are missing.
	Histories map[types.NamespacedName]map[string]*history.Container
	// Savings has memfit's changes of requests by recommendation; nil: unknown.
	Savings map[types.NamespacedName]inventory.Difference
	// Notes are shown at the top of the page. They name missing data.
	Notes []string
}

// maxCharts limits the workloads with charts, which take about 8 KB each. The table has all workloads.
const maxCharts = 500

// page is the input of the template.
type page struct {
	Place, Time string
	Notes       []string
	Totals      []total
	Workloads   []workload
	Saved       bool // the table has a column of savings
	Drawn       int  // maximum number of workloads with charts
	Omitted     int  // number of further workloads
}

type total struct{ Name, Value, About string }

type workload struct {
	report.Row

	ID                     string
	Use, Request, Proposed string   // of all containers, each pod
	Change                 string   // of requests, all pods
	Saved                  string   // of requests, all pods, so far
	Help                   []string // actions that would reduce use, and the cost of limits
	Charts                 []chart
	Entries                []report.Entry
}

//go:embed page.html.tmpl
var source string

var pageTemplate = template.Must(template.New("page").Parse(source))

// Write writes the page.
func Write(w io.Writer, in *Input) error {
	if err := pageTemplate.Execute(w, in.page()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func (in *Input) page() *page {
	p := &page{
		Place: in.Place, Time: format.Time(in.Now), Notes: in.Notes, Drawn: maxCharts, Saved: in.Savings != nil,
	}
	var sum sums
	for i, row := range report.Rows(in.Recommendations) {
		name := types.NamespacedName{Namespace: row.Namespace, Name: row.Recommendation}
		w := workloadOf(row, name.String())
		w.Change = net(sum.add(&row), "−", "+")
		saved := in.Savings[name]
		w.Saved = net(saved, "", "−")
		sum.saved.Add(saved)
		if i < maxCharts {
			w.details(in.Histories[name], in.Now)
		} else {
			p.Omitted++
		}
		p.Workloads = append(p.Workloads, w)
	}
	p.Totals = sum.totals(in)
	return p
}

func workloadOf(row report.Row, id string) workload {
	w := workload{Row: row, ID: id}
	w.Kind, w.Name = row.Called()
	var use, request, proposed memory.Bytes
	for i := range row.Status.Containers {
		c := &row.Status.Containers[i]
		use = use.Plus(report.Bytes(c.Usage))
		current, recommended := requests(c)
		request, proposed = request.Plus(current), proposed.Plus(recommended)
	}
	if !row.Sized() {
		proposed = 0
	}
	w.Use, w.Request, w.Proposed = amount(use), amount(request), amount(proposed)
	return w
}

// requests returns the current and the recommended request of a container. Both are equal without a recommendation.
func requests(c *v1alpha1.ContainerRecommendation) (current, recommended memory.Bytes) {
	current = report.Bytes(c.Current.Request)
	if c.Recommended == nil || c.Recommended.Request == nil {
		return current, current
	}
	return current, report.Bytes(c.Recommended.Request)
}

// details sets the fields for the section of a workload below the table.
func (w *workload) details(histories map[string]*history.Container, now time.Time) {
	for i := range w.Status.Containers {
		c := &w.Status.Containers[i]
		for _, text := range c.Suggestions {
			w.Help = append(w.Help, c.Container+": "+text)
		}
		if h := histories[c.Container]; h != nil {
			w.Charts = append(w.Charts, chartsOf(c, h, w.Status, now)...)
		}
	}
	w.Entries = report.EntriesOf(w.Status)
}

type sums struct {
	workloads, pods int64
	kills, stalls   int64
	killedRecently  int
	requested       memory.Bytes
	change, saved   inventory.Difference // from current to recommended requests, and so far
}

// net returns the net amount of a difference, after the sign less or more.
func net(d inventory.Difference, less, more string) string {
	switch {
	case d.Less > d.More:
		return less + amount(d.Less.Minus(d.More))
	case d.More > d.Less:
		return more + amount(d.More.Minus(d.Less))
	}
	return "–"
}

// add adds a workload and returns the difference between its current and its recommended requests.
func (s *sums) add(row *report.Row) inventory.Difference {
	pods := int64(1)
	if c := row.Status.Coverage; c != nil {
		pods = int64(c.Governed)
	}
	var d inventory.Difference
	for i := range row.Status.Containers {
		current, recommended := requests(&row.Status.Containers[i])
		s.requested = s.requested.Plus(current * memory.Bytes(pods))
		d.Less = d.Less.Plus(current.Minus(recommended) * memory.Bytes(pods))
		d.More = d.More.Plus(recommended.Minus(current) * memory.Bytes(pods))
	}
	s.workloads, s.pods = s.workloads+1, s.pods+pods
	s.kills, s.stalls = s.kills+row.Status.OOMKills, s.stalls+row.Status.Stalls
	s.change.Add(d)
	if row.Killed {
		s.killedRecently++
	}
	return d
}

func (s *sums) totals(in *Input) []total {
	all := []total{
		{"Workloads", fmt.Sprint(s.workloads), format.Count(s.pods, "pod")},
		{"OOM kills", fmt.Sprint(s.kills), format.Count(s.killedRecently, "workload") + " recently"},
		{"Stalls", fmt.Sprint(s.stalls), "just below a limit, without a kill"},
		{"Requested now", amount(s.requested), "by the running pods"},
		{"Could be saved", amount(s.change.Less), "requests above recommendations" + in.money(s.change.Less, "")},
		{"Missing", amount(s.change.More), "recommendations above requests" + in.money(s.change.More, "")},
	}
	if in.Savings == nil {
		return all
	}
	return append(all, total{"Saved so far", net(s.saved, "", "−"), in.saved(s.saved)})
}

func (in *Input) saved(d inventory.Difference) string {
	text := "compared with the owners' requests"
	switch {
	case d.Less == 0 && d.More == 0 && d.Failed > 0:
		text = "no lower request succeeded"
	case d.Less == 0 && d.More == 0:
		text = "memfit changed no request of these pods"
	case d.More > 0:
		text += fmt.Sprintf(", %s lower and %s higher", d.Less, d.More)
	}
	text += in.money(d.Less.Minus(d.More), "") + in.money(d.More.Minus(d.Less), "−")
	if d.Failed > 0 {
		text += "; without " + format.Count(int64(d.Failed), "pod") + " OOM-killed, stalled or rolled back after a decrease"
	}
	if d.Unknown > 0 {
		text += "; without " + format.Count(int64(d.Unknown), "pod") + " whose owner's request is unknown"
	}
	return text
}

// money returns ": ", a sign and the monthly cost of an amount of memory. It is empty without an amount or a price.
func (in *Input) money(b memory.Bytes, sign string) string {
	if in.PricePerGiBMonth == 0 || b == 0 {
		return ""
	}
	costs := in.PricePerGiBMonth * float64(b) / float64(memory.GiB)
	return fmt.Sprintf(": %s%.2f %s a month", sign, costs, in.Currency)
}

// amount formats an amount for a table; 0 is a dash.
func amount(b memory.Bytes) string {
	if b == 0 {
		return "–"
	}
	return b.String()
}
