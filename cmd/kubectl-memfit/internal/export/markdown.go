// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
)

// maxMarkdown limits the text of a pull request, in bytes. GitHub refuses more than 65536 characters.
const maxMarkdown = 60000

// markdown collects the text of a pull request: a row for each changed number, and the reasons below.
type markdown struct {
	rows, reasons, leftOut bytes.Buffer

	changed, unchanged int32 // numbers of workloads
	omitted            int32 // changed workloads that exceed maxMarkdown
}

// add writes the rows and reasons of an exported workload.
func (m *markdown) add(w *workload) {
	var rows strings.Builder
	for i := range w.sized {
		c := &w.sized[i]
		limit, limitChanges := cell(c.resources.Limits, c.rec.Recommended.Limit)
		request, requestChanges := cell(c.resources.Requests, c.rec.Recommended.Request)
		if limitChanges || requestChanges {
			fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s | %s |\n",
				code(w.String()), code(c.name), limit, request, code(c.rec.Decision), code(c.rec.Confidence))
		}
	}
	if rows.Len() == 0 {
		m.unchanged++
		return
	}
	m.changed++
	why := fmt.Sprintf("\n### %s\n\n%s", code(w.String()), fence(w.header()))
	if m.rows.Len()+m.reasons.Len()+m.leftOut.Len()+rows.Len()+len(why) > maxMarkdown {
		m.omitted++
		return
	}
	m.rows.WriteString(rows.String())
	m.reasons.WriteString(why)
}

func (m *markdown) leaveOut(w *workload) {
	if text := w.refusal(); m.rows.Len()+m.reasons.Len()+m.leftOut.Len()+len(text) <= maxMarkdown {
		m.leftOut.WriteString(text)
	}
}

func (m *markdown) text() []byte {
	var out bytes.Buffer
	if m.changed == 0 {
		fmt.Fprintf(&out, "All exported workloads (%d) have the recommended size.\n", m.unchanged)
	} else {
		fmt.Fprintf(&out, "memfit recommends new sizes for %s", format.Count(m.changed, "workload"))
		if m.unchanged > 0 {
			fmt.Fprintf(&out, "; %d more already have the recommended size", m.unchanged)
		}
		out.WriteString(". The reasons are below the table.\n\n| workload | container | limit | request | decision | " +
			"confidence |\n|---|---|---|---|---|---|\n")
		out.Write(m.rows.Bytes())
	}
	if m.omitted > 0 {
		fmt.Fprintf(&out, "\nOmitted here: %s; see the comments in the patches.\n", format.Count(m.omitted, "workload"))
	}
	out.Write(m.reasons.Bytes())
	if m.leftOut.Len() > 0 {
		out.WriteString("\n### Left out\n\n" + fence(m.leftOut.String()))
	}
	return out.Bytes()
}

// cell returns the template's value and, if it is different, the recommended value. A nil recommendation changes
// nothing.
func cell(list corev1.ResourceList, to *resource.Quantity) (text string, changes bool) {
	var from *resource.Quantity
	if now, found := list[corev1.ResourceMemory]; found {
		from = &now
	}
	if to == nil || from != nil && from.Cmp(*to) == 0 {
		return report.Amount(from), false
	}
	return report.Amount(from) + " → **" + report.Amount(to) + "**", true
}

// code quotes a word, so that Markdown and GitHub see no link, mention or table column in it.
func code(word string) string {
	word = strings.Map(func(r rune) rune {
		if r == '`' || r == '|' || r < ' ' {
			return ' '
		}
		return r
	}, word)
	return "`" + word + "`"
}

// fence returns the lines of a comment as a code block. Indented by four spaces, no line can end the block.
func fence(comment string) string {
	var out strings.Builder
	out.WriteString("```text\n")
	for line := range strings.Lines(comment) {
		out.WriteString("    " + strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	return out.String() + "```\n"
}
