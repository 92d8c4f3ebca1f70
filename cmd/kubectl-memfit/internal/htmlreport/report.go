// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package htmlreport makes one page of HTML from recommendations and the histories behind them, for `kubectl memfit
// report`: workloads that need attention, use against requests and limits over time, kills, stalls and memfit's
// changes. The page loads nothing and runs nothing.
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
	// Place is the scope: a context of the kubeconfig, and a namespace or all of them.
	Place string
	// Now is when the cluster was read.
	Now time.Time
	// PricePerGiBMonth of requested memory, in Currency; 0: no costs are shown.
	PricePerGiBMonth float64
	Currency         string
	Recommendations  []v1alpha1.MemoryRecommendation
	// Histories by the name of a recommendation, and by container; unreadable ones are missing.
	Histories map[types.NamespacedName]map[string]*history.Container
	// GivenBack is memfit's change of requests by the name of a recommendation; nil: unreadable.
	GivenBack map[types.NamespacedName]inventory.Difference
	// Notes are shown at the top of the page: what could not be read.
	Notes []string
}

// maxCharts bounds the workloads with charts, about 8 KB each. The table has all workloads.
const maxCharts = 500

// page is the input of the template.
type page struct {
	Place, Time string
	Notes       []string
	Totals      []total
	Workloads   []workload
	Given       bool // GivenBack is known
	Drawn       int  // maximum number of workloads with charts
	Omitted     int  // number of further workloads
}

type total struct{ Name, Value, About string }

type workload struct {
	report.Row

	ID                     string
	Use, Request, Proposed string   // of all containers, each pod
	Change                 string   // of requests, all pods
	Given                  string   // given back so far, all pods
	Help                   []string // actions that would give memory back, and cost of limits
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
		Place: in.Place, Time: format.Time(in.Now), Notes: in.Notes, Drawn: maxCharts, Given: in.GivenBack != nil,
	}
	var sum sums
	for i, row := range report.Rows(in.Recommendations) {
		name := types.NamespacedName{Namespace: row.Namespace, Name: row.Recommendation}
		w := workloadOf(row, name.String())
		w.Change = net(sum.add(&row), "−", "+")
		given := in.GivenBack[name]
		w.Given = net(given, "", "−")
		sum.given.Add(given)
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
		now, then := requests(c)
		request, proposed = request.Plus(now), proposed.Plus(then)
	}
	if !row.Sized() {
		proposed = 0
	}
	w.Use, w.Request, w.Proposed = amount(use), amount(request), amount(proposed)
	return w
}

// requests returns the current and the recommended request of a container, equal without a recommendation.
func requests(c *v1alpha1.ContainerRecommendation) (now, then memory.Bytes) {
	now = report.Bytes(c.Current.Request)
	if c.Recommended == nil || c.Recommended.Request == nil {
		return now, now
	}
	return now, report.Bytes(c.Recommended.Request)
}

// details adds what is shown about a workload below the table.
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
	change, given   inventory.Difference
}

// net returns the net amount of a difference, with a sign for its direction.
func net(d inventory.Difference, less, more string) string {
	switch {
	case d.Less > d.More:
		return less + amount(d.Less.Minus(d.More))
	case d.More > d.Less:
		return more + amount(d.More.Minus(d.Less))
	}
	return "–"
}

func (s *sums) add(row *report.Row) inventory.Difference {
	pods := int64(1)
	if c := row.Status.Coverage; c != nil {
		pods = int64(c.Governed)
	}
	var d inventory.Difference
	for i := range row.Status.Containers {
		now, then := requests(&row.Status.Containers[i])
		s.requested = s.requested.Plus(now * memory.Bytes(pods))
		d.Less = d.Less.Plus(now.Minus(then) * memory.Bytes(pods))
		d.More = d.More.Plus(then.Minus(now) * memory.Bytes(pods))
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
		{"Can be given back", amount(s.change.Less), "requests above recommendations" + in.money(s.change.Less, "")},
		{"Missing", amount(s.change.More), "recommendations above requests" + in.money(s.change.More, "")},
	}
	if in.GivenBack == nil {
		return all
	}
	return append(all, total{"Given back so far", net(s.given, "", "−"), in.given(s.given)})
}

func (in *Input) given(d inventory.Difference) string {
	text := "compared with the owners' requests"
	switch {
	case d.Less == 0 && d.More == 0 && d.Failed > 0:
		text = "no lower request has lasted"
	case d.Less == 0 && d.More == 0:
		text = "memfit changed no request of these pods"
	case d.More > 0:
		text += fmt.Sprintf(", %s less and %s more by memfit", d.Less, d.More)
	}
	text += in.money(d.Less.Minus(d.More), "") + in.money(d.More.Minus(d.Less), "−")
	if d.Failed > 0 {
		text += "; without " + format.Count(int64(d.Failed), "pod") + " with a lower request, OOM-killed, stalled or " +
			"rolled back since"
	}
	if d.Unknown > 0 {
		text += "; without " + format.Count(int64(d.Unknown), "pod") + " whose owner's size is unknown"
	}
	return text
}

// money returns the monthly cost of an amount of memory, after a sign. It is empty without an amount or a price.
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
