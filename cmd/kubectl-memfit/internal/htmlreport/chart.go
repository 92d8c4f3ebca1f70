// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package htmlreport

import (
	"fmt"
	"strings"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// Dimensions of a chart, in units of its viewBox. The left margin has the amounts, the bottom margin the times.
const (
	chartWidth, chartHeight = 520, 200
	left, right, top, below = 80, 12, 12, 34
	plotWidth               = chartWidth - left - right
	plotHeight              = chartHeight - top - below
	tickWidth               = 100 // width of a time label in the largest font
)

// chart shows the use of one container over a period.
type chart struct {
	Title, Words  string // Words is the text alternative
	Width, Height int
	Left, Right   int
	Base          int    // y of 0
	Use           string // path of the area under the peaks
	Lines         []line
	Marks         []mark
	Amounts       []tick // on the left
	Times         []tick // below
}

// line is a request or limit over time. draw sets Path and adds the last amounts to Title ("256Mi, before 21
// Nov 192Mi").
type line struct {
	Class, Title, Path string

	steps steps
}

// mark is a kill, a stall or a change.
type mark struct {
	Class, Path, Title string
}

type tick struct {
	At   float64
	Text string
}

// peak is the highest use of any replica in a period.
type peak struct {
	start  time.Time
	length time.Duration
	amount memory.Bytes
}

// chartsOf returns a chart of daily peaks, if there are at least two, and a chart of hourly peaks, if there are any.
func chartsOf(
	c *v1alpha1.ContainerRecommendation, h *history.Container, s *v1alpha1.MemoryRecommendationStatus, now time.Time,
) []chart {
	const day = 24 * time.Hour
	var days, hours []peak
	for _, d := range h.Days() {
		days = append(days, peak{d.Start, day, d.Peak})
	}
	for _, hour := range h.AppendHours(nil) {
		hours = append(hours, peak{hour.Start, time.Hour, hour.Peak})
	}
	var charts []chart
	if len(days) > 1 {
		charts = append(charts, draw(c, s, "daily peaks", days, now, axis{day, format.Day}))
	}
	if len(hours) > 0 {
		charts = append(charts, draw(c, s, "hourly peaks", hours, now, axis{6 * time.Hour, format.Hour}))
	}
	return charts
}

// scale converts times and amounts to coordinates.
type scale struct {
	from, to time.Time
	most     memory.Bytes // at the top of the chart
}

func (s *scale) x(t time.Time) float64 {
	return left + plotWidth*float64(t.Sub(s.from))/float64(s.to.Sub(s.from))
}

func (s *scale) y(b memory.Bytes) float64 {
	return top + plotHeight*(1-float64(b)/float64(s.most))
}

// axis describes the times below a chart.
type axis struct {
	every time.Duration // between two times
	text  func(time.Time) string
}

func draw(
	c *v1alpha1.ContainerRecommendation, s *v1alpha1.MemoryRecommendationStatus, what string, peaks []peak,
	now time.Time, times axis,
) chart {
	sc := scale{from: peaks[0].start, to: now}
	if last := peaks[len(peaks)-1]; sc.to.Before(last.start.Add(last.length)) {
		sc.to = last.start.Add(last.length)
	}
	highest := memory.Bytes(0)
	for _, p := range peaks {
		highest = max(highest, p.amount)
	}
	lines := linesOf(c, s, &sc)
	sc.most = highest
	for i := range lines {
		for _, st := range lines[i].steps {
			sc.most = max(sc.most, st.amount)
		}
	}
	sc.most = max(sc.most.Plus(sc.most.Percent(10)), memory.MiB)

	ch := chart{
		Title: c.Container + ": " + what,
		Words: fmt.Sprintf("%s of container %s from %s on, the highest %s.", capital(what), c.Container,
			format.Time(sc.from), highest),
		Width: chartWidth, Height: chartHeight, Left: left, Right: chartWidth - right, Base: chartHeight - below,
		Use: area(&sc, peaks), Lines: lines,
	}
	for i := range lines {
		l := &lines[i]
		l.Title, l.Path = l.Title+" "+l.steps.lastAmounts(times.text), l.steps.path(&sc)
		ch.Words += " " + capital(l.Title) + "."
	}
	ch.marks(&sc, c.Container, s)
	ch.Words += counted(ch.Marks)
	for _, share := range []memory.Bytes{0, 1, 2} {
		amount := sc.most / 2 * share
		ch.Amounts = append(ch.Amounts, tick{sc.y(amount), amount.String()})
	}
	ch.Times = ticks(&sc, times)
	return ch
}

// ticks returns the times below a chart, far enough apart to be readable.
func ticks(sc *scale, times axis) (all []tick) {
	last := float64(left - tickWidth)
	for t := sc.from.Truncate(times.every).Add(times.every); t.Before(sc.to); t = t.Add(times.every) {
		if at := sc.x(t); at-last >= tickWidth && at <= chartWidth-tickWidth/2 { // otherwise it would overflow
			all, last = append(all, tick{at, times.text(t)}), at
		}
	}
	if len(all) == 0 { // the history is shorter than times.every
		all = append(all, tick{left + tickWidth/2, times.text(sc.from)})
	}
	return all
}

// area returns the path under the peaks, with gaps where nothing was measured.
func area(s *scale, peaks []peak) string {
	var b strings.Builder
	var end time.Time
	for i, p := range peaks {
		if i == 0 || !p.start.Equal(end) {
			if i > 0 {
				fmt.Fprintf(&b, "V%.1fZ", s.y(0))
			}
			fmt.Fprintf(&b, "M%.1f %.1f", s.x(p.start), s.y(0))
		}
		end = p.start.Add(p.length)
		fmt.Fprintf(&b, "V%.1fH%.1f", s.y(p.amount), s.x(end))
	}
	fmt.Fprintf(&b, "V%.1fZ", s.y(0))
	return b.String()
}

// marks adds the kills and stalls of the container, and the changes of its pods, in the period.
func (ch *chart) marks(sc *scale, container string, s *v1alpha1.MemoryRecommendationStatus) {
	add := func(at time.Time, class, shape string, y float64, title string) {
		if !at.Before(sc.from) && !at.After(sc.to) {
			ch.Marks = append(ch.Marks, mark{class, fmt.Sprintf("M%.1f %.1f", sc.x(at), y) + shape, title})
		}
	}
	for i := range s.RecentChanges {
		c := &s.RecentChanges[i]
		title := fmt.Sprintf("%s: %s %s", format.Time(c.Time.Time), c.Kind, c.Change)
		add(c.Time.Time, "change", "m0 -5l5 5l-5 5l-5 -5z", chartHeight-below, title)
	}
	for i := range s.RecentStalls {
		if c := &s.RecentStalls[i]; c.Container == container {
			title := format.Time(c.Time.Time) + ": stalled at " + memory.FromQuantity(c.Limit).String()
			add(c.Time.Time, "stall", "m-4 -4h8v8h-8z", sc.y(min(memory.FromQuantity(c.Limit), sc.most)), title)
		}
	}
	for i := range s.RecentOOMKills {
		if k := &s.RecentOOMKills[i]; k.Container == container {
			at := min(report.Bytes(k.Limit), sc.most)
			title := fmt.Sprintf("%s: OOM kill (%s) at %s", format.Time(k.Time.Time), k.Kind, amount(report.Bytes(k.Limit)))
			add(k.Time.Time, "kill", "m-6 -6h12l-6 10z", sc.y(at), title)
		}
	}
}

// counted returns the number of marks of each class, for the text alternative of a chart.
func counted(marks []mark) (words string) {
	for _, kind := range []struct{ class, noun string }{{"kill", "OOM kill"}, {"stall", "stall"}, {"change", "change"}} {
		n := 0
		for i := range marks {
			if marks[i].Class == kind.class {
				n++
			}
		}
		if n > 0 {
			words += " " + format.Count(n, kind.noun) + "."
		}
	}
	return words
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
