// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	_ "embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

// Report is what is written of a story, as text and as HTML.
type Report struct {
	Name, Title, Met, Said string
	Known                  string // what a person makes of what was asked
	Looked                 string // where, in words
	When                   string
	Took                   []time.Duration // of each run, the first one first
	Bare                   bool
	Err                    string // why the story did not happen
	Table                  [][]string
	Outcomes               []Outcome
	Answers                []Answer
	Verdict                string
	Parts                  []Parts
	Commands               []Command
	Pictures               []File
}

// Parts is what memfit's agent found in an arm after a step.
type Parts struct {
	Arm, Step string
	*Container
}

// Command is something a person would type, and what it printed.
type Command struct{ Line, Out string }

// File is a picture: its name below the folder of pictures, its title and what is in it.
type File struct {
	Name, Title string
	SVG         htmltemplate.HTML
}

// OK reports whether the story came out, in all its runs. What its author needed to know and memfit did not say
// counts, but without a cluster it cannot be asked.
func (r *Report) OK() bool {
	return r.Err == "" && !slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return !o.OK }) &&
		(r.Bare || !slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Line == "" || a.Unsaid > 0 }))
}

// after is this report with what came out of the earlier runs of the same story. The pictures, the table and what was
// said stay those of the last run.
func (r *Report) after(earlier *Report) *Report {
	if earlier == nil {
		return r
	}
	r.Took = append(slices.Clone(earlier.Took), r.Took...)
	for i, was := range earlier.Answers {
		if r.Answers[i].Unsaid += was.Unsaid; was.Line == "" {
			r.Answers[i].Unsaid++
		}
	}
	if earlier.Err != "" {
		r.Err = strings.TrimSpace(earlier.Err + "\n" + r.Err)
	}
	for i, was := range earlier.Outcomes {
		r.Outcomes[i].Earlier = append(was.Earlier, was)
		r.Outcomes[i].OK = r.Outcomes[i].OK && was.OK
	}
	return r
}

// values are what was measured in all runs, the first one first.
func (o Outcome) values() string {
	var all []string
	for _, x := range append(slices.Clone(o.Earlier), o) {
		if x.Err != nil {
			all = append(all, "-")
		} else {
			all = append(all, fmt.Sprintf("%.2f", x.Value))
		}
	}
	return strings.Join(all, ", ")
}

// report puts a run into words, and draws its pictures into a folder.
func report(run *Run, failed error, pictures string) (*Report, error) {
	s := run.Story
	out := &Report{
		Name: s.Name, Title: s.Title, Met: s.Met, Said: s.Said, Known: s.Known,
		Took: []time.Duration{run.Took.Round(time.Second)}, Bare: run.Bare,
		When: run.Began.UTC().Format(time.DateOnly), Looked: s.Look.Arm + ", after " + s.Look.Step,
		Table: table(run), Outcomes: Judge(run), Commands: commands(run),
	}
	if failed != nil {
		out.Err = failed.Error()
	}
	out.Answers, out.Verdict = answers(run)
	for _, x := range run.Readings {
		if x.Look != nil {
			out.Parts = append(out.Parts, Parts{x.Arm, x.Step, x.Look})
		}
	}
	if run.Map != "" {
		name, title := s.Name+"-pages.svg", "The pages of "+out.Looked+", as kubectl memfit map draws them"
		if err := os.WriteFile(filepath.Join(pictures, name), []byte(run.Map), 0o644); err != nil {
			return out, err
		}
		svg := htmltemplate.HTML(run.Map) //nolint:gosec // memfit's own, which is a picture for pages
		out.Pictures = append(out.Pictures, File{name, title, svg})
	}
	for _, p := range s.Pictures {
		path := filepath.Join(pictures, p.Name+".svg")
		if err := p.draw(run, path); err != nil {
			return out, fmt.Errorf("drawing %s: %w", path, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return out, err
		}
		out.Pictures = append(out.Pictures, File{p.Name + ".svg", p.Title, htmltemplate.HTML(text)}) //nolint:gosec // gonum's
	}
	return out, nil
}

// answers looks for what the author needed in what memfit said.
func answers(run *Run) ([]Answer, string) {
	pod := "?"
	if x, err := run.At(run.Story.Look.Arm, run.Story.Look.Step); err == nil {
		pod = x.Pod
	}
	return answersFor(run, pod)
}

func answersFor(run *Run, pod string) ([]Answer, string) {
	var said []string
	by := make([][]string, len(places))
	for _, c := range commands(run) {
		for i, place := range places {
			if strings.HasPrefix(c.Line, place) {
				by[i] = sentences(c)
			}
		}
		if strings.Contains(c.Line, "memfit") || strings.Contains(c.Line, "recommendation") {
			said = append(said, sentences(c)...)
		}
	}
	var out []Answer
	found := 0
	for _, n := range run.Story.Needed {
		a := Answer{Need: n}
		pattern := regexp.MustCompile(strings.ReplaceAll(n.Pattern, "POD", regexp.QuoteMeta(pod)))
		for _, sentences := range by {
			a.By = append(a.By, slices.ContainsFunc(sentences, pattern.MatchString))
		}
		for _, sentence := range said {
			if pattern.MatchString(sentence) {
				a.Line, a.Same = sentence, len(out) > 0 && out[len(out)-1].Line == sentence
				found++
				break
			}
		}
		out = append(out, a)
	}
	if len(run.Said) == 0 {
		return out, "not asked"
	}
	return out, fmt.Sprintf("%d of %d", found, len(out))
}

// places are where an author looks first, and what of it is told for each thing that is needed.
var places = []string{"kubectl describe pod", "kubectl describe memoryrecommendation", "kubectl memfit why"}

// Alone says how much each of [places] answers by itself.
func (r *Report) Alone() string {
	var all []string
	for i, place := range places {
		n := 0
		for _, a := range r.Answers {
			if i < len(a.By) && a.By[i] {
				n++
			}
		}
		all = append(all, fmt.Sprintf("`%s` %d", place, n))
	}
	return fmt.Sprintf("Of %d facts, each command alone reports: %s.", len(r.Answers), strings.Join(all, ", "))
}

// wrapped is from which length on a line may be followed by the rest of its sentence: memfit's commands wrap at 108.
const wrapped = 84

// sentences are lines, with those that memfit wrapped put together again.
func sentences(c Command) []string {
	var out []string
	before, wraps := 0, strings.HasPrefix(c.Line, "kubectl memfit")
	for line := range strings.Lines(c.Out) {
		short := strings.TrimSpace(line)
		rest := wraps && before >= wrapped && strings.HasPrefix(line, "  ") && !strings.HasPrefix(short, "- ")
		if n := len(out); n > 0 && rest {
			out[n-1] += " " + short
		} else {
			out = append(out, short)
		}
		before = len(strings.TrimRight(line, "\n"))
	}
	return out
}

func commands(run *Run) []Command {
	var out []Command
	for line, text := range run.Said {
		out = append(out, Command{line, strings.TrimRight(text, "\n ")})
	}
	slices.SortFunc(out, func(a, b Command) int { return strings.Compare(a.Line, b.Line) })
	return out
}

// table shows what each arm said: after one step in columns of the story's own, or its RSS after each.
func table(run *Run) [][]string {
	s := run.Story
	head := []string{"arm", "what it is"}
	columns := s.Table.Columns
	if len(columns) == 0 {
		head = append(head, "at start")
		for _, step := range s.Steps {
			head = append(head, "after "+step.Name)
		}
	}
	for _, c := range columns {
		head = append(head, c.Title)
	}
	rows := [][]string{head}
	for _, arm := range s.Arms {
		row := []string{arm.Name, arm.Says}
		if len(columns) == 0 {
			for _, step := range append([]Step{{Name: "start"}}, s.Steps...) {
				row = append(row, show(run, arm.Name, step.Name, func(r *Reading) string { return mib(r.Values["rss"]) }))
			}
		}
		for _, c := range columns {
			row = append(row, show(run, arm.Name, s.Table.Step, c.Show))
		}
		rows = append(rows, row)
	}
	return rows
}

func show(run *Run, arm, step string, how func(*Reading) string) string {
	x, err := run.At(arm, step)
	if err != nil {
		if died, dead := run.died(arm); dead {
			return died
		}
		return "-"
	}
	if x.Dead != "" {
		return x.Dead
	}
	return how(x)
}

//go:embed report.md.tmpl
var markdownText string

//go:embed node.md.tmpl
var nodeText string

//go:embed report.html.tmpl
var htmlText string

var functions = map[string]any{
	"cell":  cell,
	"lines": func(text string) string { return strings.ReplaceAll(text, ". ", ".\n") }, // a sentence each
	"mib":   mib, "prose": prose,
	"here":   Outcome.values,
	"places": func() []string { return places },
	"want": func(o Outcome) string {
		if math.IsInf(o.Within, 1) {
			return fmt.Sprintf("%.2f, no bound", o.Want)
		}
		return fmt.Sprintf("%.2f ± %.2f", o.Want, o.Within)
	},
	"agrees": func(o Outcome) string {
		switch {
		case !o.OK:
			return "**no**"
		case math.IsInf(o.Within, 1):
			return "reported"
		}
		return "yes"
	},
	"times": func(all []time.Duration) string {
		var words []string
		for _, d := range all {
			words = append(words, d.String())
		}
		return strings.Join(words, ", ")
	},
	"anchor": func(title string) string { // as GitHub makes it of a heading
		words := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), "")
		return strings.ReplaceAll(words, " ", "-")
	},
}

// page is what both reports are made of.
type page struct {
	Machine string
	Node    string        // the node of the lab where they were told; "": its own
	Bare    bool          // without a cluster
	Times   int           // runs of each story
	At      int           // stories at a time
	Took    time.Duration // all of the command; 0: not known
	Setup   time.Duration // of that, before the first story: the cluster, memfit and the programs
	Stories []*Report
	began   time.Time
}

// Runs is how long each run of all stories took, with what was done before the first.
func (p page) Runs() []time.Duration {
	var all []time.Duration
	for _, r := range p.Stories {
		for i, took := range r.Took {
			if i == len(all) {
				all = append(all, p.Setup)
			}
			all[i] += took
		}
	}
	return all
}

// mostInCell is how much of a line of output the page quotes; the HTML report has all.
const mostInCell = 360

// cell returns a text for a cell of a Markdown table: on one line, with single spaces, and cut.
func cell(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "\\|")), " ")
	if len(text) <= mostInCell {
		return text
	}
	return text[:strings.LastIndex(text[:mostInCell], " ")] + " ..."
}

func writeMarkdown(w io.Writer, text string, p page) error {
	return template.Must(template.New("md").Funcs(functions).Parse(text)).Execute(w, p)
}

// quoted is code in prose, as Markdown has it.
var quoted = regexp.MustCompile("`([^`]*)`")

// prose is a text with its code as HTML has it.
func prose(text string) htmltemplate.HTML {
	escaped := htmltemplate.HTMLEscapeString(text)
	return htmltemplate.HTML(quoted.ReplaceAllString(escaped, "<code>$1</code>")) //nolint:gosec // escaped
}

func writeHTML(w io.Writer, p page) error {
	return htmltemplate.Must(htmltemplate.New("html").Funcs(functions).Parse(htmlText)).Execute(w, p)
}
