// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// tables are the generated parts of the page, by the name in their markers:
//
//	<!-- table NAME: make generate -->
//	...
//	<!-- end of table NAME -->
var tables = map[string]func(page string) []string{
	"settings":  settings,
	"full heap": fullHeap,
	"never":     never,
	"launchers": launchers,
}

// withTables is the page with every table as the code has it today.
func withTables(page string) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		head, foot := fmt.Sprintf("<!-- table %s: make generate -->\n", name), fmt.Sprintf("<!-- end of table %s -->\n", name)
		before, rest, found := strings.Cut(page, head)
		_, after, closed := strings.Cut(rest, foot)
		if !found || !closed {
			return "", fmt.Errorf(
				"it has no lines %q and %q with the table between them", strings.TrimSpace(head), strings.TrimSpace(foot),
			)
		}
		page = before + head + strings.Join(tables[name](page), "\n") + "\n" + foot + after
	}
	return page, nil
}

// settings says what each runtime gets, and how memfit knows that a container runs it.
func settings(page string) []string {
	lines := []string{
		"| runtime | `runtime.type` | told by a command | set by default | only when the profile asks |",
		"|---|---|---|---|---|",
	}
	all := runtimes.All()
	for _, r := range slices.Concat(all[1:], all[:1]) { // Auto, which is none of them, comes last
		byDefault, asked := split(r)
		lines = append(lines, cells(heading(page, r), code(r.Name), codes(r.Commands), codes(byDefault), codes(asked)))
	}
	return lines
}

// split parts the settings of a runtime into those that a profile which says nothing sets at a limit of 1Gi, and the
// others.
func split(r *runtimes.Runtime) (byDefault, asked []string) {
	f := runtimes.Facts{Limit: memory.GiB, Cgroup: memory.GiB, LimitText: memory.GiB.String()}
	for _, k := range r.Knobs {
		if k.Derive(f).Value != "" {
			byDefault = append(byDefault, k.Name)
		} else {
			asked = append(asked, k.Name)
		}
	}
	return byDefault, asked
}

// fullHeap says how runtimes end whose own heap cap is reached.
func fullHeap(page string) []string {
	lines := []string{"| runtime | exit codes | last words | what raises the cap |", "|---|---|---|---|"}
	for _, r := range runtimes.All() {
		full := r.FullHeap
		if len(full.Exits)+len(full.Faults)+len(full.Words) == 0 {
			continue
		}
		exits := numbers(full.Exits)
		for _, n := range numbers(full.Faults) {
			exits = append(exits, n+" with memory at the cap")
		}
		lines = append(lines, cells(heading(page, r), strings.Join(exits, ", "), codes(full.Words), full.Raise))
	}
	return lines
}

// never says what is not set, and why.
func never(page string) []string {
	lines := []string{"| runtime | never set | why |", "|---|---|---|"}
	for _, r := range runtimes.All() {
		for _, name := range slices.Sorted(maps.Keys(r.Never)) {
			lines = append(lines, cells(heading(page, r), code(name), r.Never[name]))
		}
	}
	return lines
}

// launchers are the variables from which start scripts take a heap cap.
func launchers(string) []string {
	lines := []string{"| variable | read by | holds | source |", "|---|---|---|---|"}
	for _, r := range runtimes.All() {
		for _, l := range r.Launchers {
			lines = append(lines, cells(code(l.Name), l.Of, string(l.Holds), l.Source))
		}
	}
	return lines
}

// heading is what people call the runtime, as a link where the page has a section about it.
func heading(page string, r *runtimes.Runtime) string {
	for line := range strings.Lines(page) {
		section, is := strings.CutPrefix(strings.TrimSpace(line), "## ")
		title := strings.ToLower(section) + " "
		if is && (section == r.Name || strings.HasPrefix(title, strings.ToLower(r.Title)+" ")) {
			return fmt.Sprintf("[%s](#%s)", r.Title, strings.NewReplacer(" ", "-", ".", "").Replace(strings.ToLower(section)))
		}
	}
	return r.Title
}

func cells(texts ...string) string {
	for i := range texts {
		if texts[i] == "" {
			texts[i] = "-"
		}
	}
	return "| " + strings.Join(texts, " | ") + " |"
}

func code(text string) string { return "`" + text + "`" }

func codes(texts []string) string {
	marked := make([]string, len(texts))
	for i := range texts {
		marked[i] = code(texts[i])
	}
	return strings.Join(marked, ", ")
}

func numbers(of []int32) []string {
	texts := make([]string, len(of))
	for i := range of {
		texts[i] = strconv.Itoa(int(of[i]))
	}
	return texts
}
