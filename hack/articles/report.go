// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Report is the published result of a story.
type Report struct {
	Name, Title, Found, Comment string
	Known                       string // see Story
	Took                        time.Duration
	Err                         string // why the story failed
	Outcomes                    []Outcome
	Answers                     []Answer
	Verdict                     string
	Readings                    []Reading
	Commands                    []Command
	Pictures                    []File
}

// Command is a command line, and what it printed.
type Command struct{ Line, Out string }

// File is a picture: its name below the folder of pictures and its title.
type File struct{ Name, Title string }

// Wrong lists the results that differ from the expected ones, and the needed facts that memfit did not report.
func (r *Report) Wrong() []string {
	var out []string
	if r.Err != "" {
		out = append(out, r.Err)
	}
	for _, o := range r.Outcomes {
		switch {
		case o.OK:
		case o.Err != nil:
			out = append(out, fmt.Sprintf("%s: %v", o.What, o.Err))
		default:
			out = append(out, fmt.Sprintf("%s: %.2f (%s), expected %s", o.What, o.Value, o.From, want(o)))
		}
	}
	for _, a := range r.Answers {
		if a.Line == "" {
			out = append(out, "memfit did not report "+a.What)
		}
	}
	return out
}

// OK reports whether nothing was wrong.
func (r *Report) OK() bool { return len(r.Wrong()) == 0 }

// report evaluates a run, and draws its pictures into a folder.
func report(run *Run, failed error, pictures string) (*Report, error) {
	s := run.Story
	out := &Report{
		Name: s.Name, Title: s.Title, Found: s.Found, Comment: s.Comment, Known: s.Known,
		Took: run.Took.Round(time.Second), Outcomes: Judge(run), Readings: run.Readings,
		Commands: commands(run),
	}
	if failed != nil {
		out.Err = failed.Error()
	}
	out.Answers, out.Verdict = answers(run)
	if run.Map != "" {
		name := s.Name + "-pages.svg"
		if err := os.WriteFile(filepath.Join(pictures, name), []byte(run.Map), 0o644); err != nil {
			return out, err
		}
		title := fmt.Sprintf("The pages of %s, after %s, as kubectl memfit map draws them", s.Checked.Arm, s.Checked.Step)
		out.Pictures = append(out.Pictures, File{name, title})
	}
	for _, p := range s.Pictures {
		path := filepath.Join(pictures, p.Name+".svg")
		if err := p.draw(run, path); err != nil {
			return out, fmt.Errorf("drawing %s: %w", path, err)
		}
		out.Pictures = append(out.Pictures, File{p.Name + ".svg", p.Title})
	}
	return out, nil
}

// answers finds the facts that the author needed in memfit's output, and counts them.
func answers(run *Run) ([]Answer, string) {
	pod := "?"
	if x, err := run.At(run.Story.Checked.Arm, run.Story.Checked.Step); err == nil {
		pod = x.Pod
	}
	return answersFor(run, pod)
}

func answersFor(run *Run, pod string) ([]Answer, string) {
	var reported []string
	for _, c := range commands(run) {
		if strings.Contains(c.Line, "memfit") || strings.Contains(c.Line, "recommendation") {
			reported = append(reported, sentences(c)...)
		}
	}
	var out []Answer
	found := 0
	for _, n := range run.Story.Needed {
		a := Answer{Need: n}
		pattern := regexp.MustCompile(strings.ReplaceAll(n.Pattern, "POD", regexp.QuoteMeta(pod)))
		for _, sentence := range reported {
			if pattern.MatchString(sentence) {
				a.Line, a.Same = sentence, len(out) > 0 && out[len(out)-1].Line == sentence
				found++
				break
			}
		}
		out = append(out, a)
	}
	if len(run.Output) == 0 {
		return out, "none of the"
	}
	return out, fmt.Sprintf("%d of %d", found, len(out))
}

// wrapped is the shortest line that memfit's commands, which wrap at 108 columns, may have wrapped.
const wrapped = 84

// sentences returns the lines of the output; lines that memfit wrapped are joined.
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
	for line, text := range run.Output {
		out = append(out, Command{line, strings.TrimRight(text, "\n ")})
	}
	slices.SortFunc(out, func(a, b Command) int { return strings.Compare(a.Line, b.Line) })
	return out
}

//go:embed report.md.tmpl
var markdownText string

//go:embed node.md.tmpl
var nodeText string

//go:embed output.txt.tmpl
var outputText string

var functions = map[string]any{
	"cell":  cell,
	"join":  func(lines []string) string { return cell(strings.Join(lines, "; ")) },
	"lines": func(text string) string { return strings.ReplaceAll(text, ". ", ".\n") }, // a sentence each
	"size":  func(q *resource.Quantity) string { return mib(bytes(q)) },
	"here": func(o Outcome) string {
		if o.Err != nil {
			return "-"
		}
		return fmt.Sprintf("%.2f", o.Value)
	},
	"bounded": func(o Outcome) bool { return !math.IsInf(o.Within, 1) },
	"want":    want,
	"anchor": func(title string) string { // as GitHub makes it of a heading
		words := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), "")
		return strings.ReplaceAll(words, " ", "-")
	},
}

// want formats the expected value of a row.
func want(o Outcome) string {
	switch {
	case math.IsInf(o.Within, 1):
		return fmt.Sprintf("%.2f, no bound", o.Want)
	case o.Within == 0:
		return fmt.Sprintf("%.2f", o.Want)
	}
	return fmt.Sprintf("%.2f ±%.2f", o.Want, o.Within)
}

// page is the data of the Markdown page.
type page struct {
	Machine string
	Took    time.Duration
	Node    string // the node of the lab where the programs ran; "": the default node
	Stories []*Report
}

// mostInCell is how many bytes of a line of output the page quotes; the file with the output has all.
const mostInCell = 240

// cell returns a text for a cell of a Markdown table: on one line, with single spaces, at most mostInCell long.
func cell(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "\\|")), " ")
	if len(text) <= mostInCell {
		return text
	}
	return text[:strings.LastIndex(text[:mostInCell], " ")] + " ..."
}

func writeTemplate(w io.Writer, text string, data any) error {
	return template.Must(template.New("").Funcs(functions).Parse(text)).Execute(w, data)
}
