// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// Table says how to print rows.
type Table struct {
	// Namespaces adds a column with the namespace, Wide those for requests, confidence, pods and the summary.
	Namespaces, Wide bool
	// NoHeaders leaves nothing but the lines of workloads: no headings, and nothing below.
	NoHeaders bool
	Colours   Colours
}

// stepsShown is how many workloads the lines below the table are about: what somebody does in one sitting.
const stepsShown = 3

// Write prints a line for each row, and below what to do next about the first of them.
func (t Table) Write(w io.Writer, rows []Row) error {
	var laid bytes.Buffer
	tabs := printers.GetNewTabWriter(&laid)
	if !t.NoHeaders {
		fmt.Fprintln(tabs, strings.Join(t.headings(), "\t"))
	}
	for i := range rows {
		fmt.Fprintln(tabs, strings.Join(t.cells(&rows[i]), "\t"))
	}
	if err := tabs.Flush(); err != nil {
		return fmt.Errorf("laying out the table: %w", err)
	}
	// Colours come last: the layout counts their bytes as columns.
	lines := strings.Split(strings.TrimSuffix(laid.String(), "\n"), "\n")
	above := len(lines) - len(rows)
	for i, text := range lines {
		colour := bold
		if i >= above {
			colour = alarm(&rows[i-above])
		}
		lines[i] = t.Colours.paint(colour, strings.TrimRight(text, " "))
	}
	text := strings.Join(lines, "\n") + "\n"
	if !t.NoHeaders {
		text += t.next(rows)
	}
	_, err := io.WriteString(w, text)
	return err
}

func alarm(r *Row) string {
	switch {
	case r.Killed, r.Stalled:
		return red
	case r.drifts():
		return yellow
	}
	return ""
}

func (t Table) headings() []string {
	h := []string{"WORKLOAD", "PROFILE", "RUNTIME", "LIMIT", "USE", "OOMS", "MEMORY", "APPLIED"}
	if t.Namespaces {
		h = append([]string{"NAMESPACE"}, h...)
	}
	if t.Wide {
		h = append(h, "REQUEST", "CONFIDENCE", "PODS", "SUMMARY")
	}
	return h
}

func (t Table) cells(r *Row) []string {
	c := []string{r.typed(), r.Profile.Name, runtimesOf(r), limits(r), uses(r), kills(r), shapes(r), applied(r)}
	if t.Namespaces {
		c = append([]string{r.Namespace}, c...)
	}
	if t.Wide {
		c = append(c, requests(r), confidences(r), pods(r), r.Summary)
	}
	for i := range c {
		if c[i] = line(c[i]); c[i] == "" {
			c[i] = "-"
		}
	}
	return c
}

// each says something of every container, with its name where there are several.
func (r *Row) each(say func(c *Container) string) string {
	var parts []string
	for i := range r.Containers {
		text := say(&r.Containers[i])
		if len(r.Containers) > 1 {
			text = r.Containers[i].Name + "=" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func limits(r *Row) string {
	return r.each(func(c *Container) string {
		if c.Recommended == nil {
			return fmt.Sprintf("%s (%s)", Amount(c.Current.Limit), c.Decision)
		}
		return step(c.Current.Limit, c.Recommended.Limit)
	})
}

// uses is what the fullest replica used lately, and how much of its limit that is.
func uses(r *Row) string {
	if !slices.ContainsFunc(r.Containers, func(c Container) bool { return c.Use != nil }) {
		return ""
	}
	return r.each(func(c *Container) string {
		switch {
		case c.Use == nil:
			return "-"
		case c.UsePercent == 0:
			return Amount(c.Use)
		}
		return fmt.Sprintf("%s (%d%%)", Amount(c.Use), c.UsePercent)
	})
}

func requests(r *Row) string {
	return r.each(func(c *Container) string {
		if c.Recommended == nil {
			return Amount(c.Current.Request)
		}
		return step(c.Current.Request, c.Recommended.Request)
	})
}

func runtimesOf(r *Row) string {
	var names []string
	for i := range r.Containers {
		names = append(names, without(r.Containers[i].Runtime, " ("))
	}
	// What nobody knows of a sidecar is no news next to what is known of the application.
	if known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "unknown" }); len(known) > 0 {
		names = known
	}
	return strings.Join(distinct(names), ", ")
}

func confidences(r *Row) string {
	return r.each(func(c *Container) string { return c.Confidence })
}

func kills(r *Row) string {
	if r.Killed {
		return fmt.Sprintf("%d, lately", r.OOMKills)
	}
	return fmt.Sprint(r.OOMKills)
}

// shapes is what memory does; the time that is left comes with it, because it says how soon somebody must look.
func shapes(r *Row) string {
	var texts []string
	for i := range r.Containers {
		c := &r.Containers[i]
		text := c.Shape
		if c.TimeToLimit != "" {
			text += ", limit in " + c.TimeToLimit
		}
		texts = append(texts, text)
	}
	if r.Stalled {
		return "stands still"
	}
	if r.drifts() {
		texts = append([]string{r.Drift.Reason}, texts...)
		// The reason of the condition is mostly the shape, which comes with more.
		if len(texts) > 1 && strings.HasPrefix(texts[1], r.Drift.Reason) {
			texts = texts[1:]
		}
	}
	return strings.Join(distinct(texts), "; ")
}

func applied(r *Row) string {
	switch r.Applied.Status {
	case metav1.ConditionTrue:
		return "yes"
	case metav1.ConditionFalse:
		return fmt.Sprintf("no (%s)", r.Applied.Reason)
	case metav1.ConditionUnknown:
		return fmt.Sprintf("unknown (%s)", r.Applied.Reason)
	}
	return ""
}

func pods(r *Row) string {
	if r.Coverage == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Coverage.Injected, r.Coverage.Governed)
}

// next is what to do about the first rows that need somebody.
func (t Table) next(rows []Row) string {
	var text strings.Builder
	shown, more, where := 0, 0, ""
	if t.Namespaces {
		where = "-n NAMESPACE "
	}
	for i := range rows {
		r := &rows[i]
		switch {
		case len(r.Next) == 0:
			continue
		case shown == stepsShown:
			more++
			continue
		}
		if shown++; shown == 1 {
			text.WriteString("\n" + t.Colours.paint(bold, "What to do next") + "\n")
		}
		name := r.typed()
		if t.Namespaces {
			name = r.Namespace + " " + name
		}
		fmt.Fprintf(&text, "  %s: %s\n", name, line(r.Next[0]))
	}
	if more > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	if shown > 0 {
		text.WriteString("Why these numbers: kubectl memfit explain " + where + "WORKLOAD\n")
	}
	return text.String()
}
