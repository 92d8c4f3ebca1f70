// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report gathers the outcomes of one run, and writes index.html with its pictures into Dir.
type Report struct {
	Dir      string
	outcomes []Outcome
	verdicts []Verdict
	pictures []picture
}

// picture is one PNG of the report.
type picture struct{ Set, Title, File string }

// Add takes the outcomes of one set and what they were judged to be.
func (r *Report) Add(outcomes []Outcome, v Verdict) {
	r.outcomes = append(r.outcomes, outcomes...)
	r.verdicts = append(r.verdicts, v)
}

// chosen are the series of a set worth a picture: where VPA was killed most, where memfit was, and where memfit held
// most for nothing.
func (r *Report) chosen(set Set) []int {
	of := func(policy string) []Result {
		for _, o := range r.outcomes {
			if o.Set == set.Name && o.Policy == policy {
				return o.Results
			}
		}
		return nil
	}
	mine, vpa := of("memfit"), of("vpa")
	var picked []int
	pick := func(score func(i int) float64) {
		best, most := -1, 0.
		for i := range set.Series {
			if s := score(i); s > most && !slices.Contains(picked, i) {
				best, most = i, s
			}
		}
		if best >= 0 {
			picked = append(picked, best)
		}
	}
	pick(func(i int) float64 { return float64(vpa[i].Kills) })
	pick(func(i int) float64 { return float64(mine[i].Kills) })
	pick(func(i int) float64 { return mine[i].Slack })
	pick(func(i int) float64 { return vpa[i].Ratio() - mine[i].Ratio() })
	return picked
}

// Draw makes the pictures of one set: its curve and its chosen series.
func (r *Report) Draw(set Set) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	file := set.Name + "-curve.png"
	if err := drawCurve(filepath.Join(r.Dir, file), r.verdicts[len(r.verdicts)-1]); err != nil {
		return err
	}
	r.pictures = append(r.pictures, picture{set.Name, "kills against slack", file})
	for _, i := range r.chosen(set) {
		s := set.Series[i]
		file := set.Name + "-" + strings.NewReplacer("/", "-", " ", "-").Replace(s.Name) + ".png"
		if err := drawSeries(filepath.Join(r.Dir, file), s); err != nil {
			return err
		}
		r.pictures = append(r.pictures, picture{set.Name, s.Name, file})
	}
	return nil
}

var page = template.Must(template.New("index").Parse(`<!doctype html>
<meta charset="utf-8"><title>memfit backtest</title>
<style>body{font:15px sans-serif;margin:2em;max-width:70em}td,th{padding:.2em .8em;text-align:right}td:first-child,td:nth-child(2),th:first-child,th:nth-child(2){text-align:left}img{max-width:100%}</style>
<h1>memfit backtest</h1>
<p>The reporting half of each set. Slack is memory held and not used, per memory used. Changes are limits applied after the first. How it is simulated: docs/evidence/backtest.md.</p>
<table><tr><th>set<th>policy<th>series<th>days<th>kills<th>slack, total<th>slack, median<th>changes per series and day</tr>
{{range .Rows}}<tr><td>{{.Set}}<td>{{.Policy}}<td>{{.Series}}<td>{{printf "%.1f" .Days}}<td>{{.Kills}}<td>{{printf "%.3f" .SlackTotal}}<td>{{printf "%.3f" .SlackMedian}}<td>{{printf "%.2f" .Churn}}</tr>
{{end}}</table>
{{range .Pictures}}<h2>{{.Set}}: {{.Title}}</h2><img src="{{.File}}" alt="{{.Title}}">
{{end}}`))

// Write makes index.html. Without a directory there is nothing to write.
func (r *Report) Write() error {
	if r.Dir == "" {
		return nil
	}
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		Rows     []Outcome
		Pictures []picture
	}{r.outcomes, r.pictures})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Dir, "index.html"), b.Bytes(), 0o644)
}
