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

// maxMarkdown bounds the text of a pull request, in bytes: GitHub refuses more than 65536 characters.
const maxMarkdown = 60000

// markdown collects the text of a pull request: a row for each changed number, and the reasons below.
type markdown struct {
	rows, reasons, left bytes.Buffer
	// workloads counts changed workloads, same unchanged ones, omitted the changed ones that do not fit.
	workloads, same, omitted int32
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
		m.same++
		return
	}
	m.workloads++
	why := fmt.Sprintf("\n### %s\n\n%s", code(w.String()), fence(w.header()))
	if m.rows.Len()+m.reasons.Len()+m.left.Len()+rows.Len()+len(why) > maxMarkdown {
		m.omitted++
		return
	}
	m.rows.WriteString(rows.String())
	m.reasons.WriteString(why)
}

func (m *markdown) leave(w *workload) {
	if text := w.refusal(); m.rows.Len()+m.reasons.Len()+m.left.Len()+len(text) <= maxMarkdown {
		m.left.WriteString(text)
	}
}

func (m *markdown) text() []byte {
	var out bytes.Buffer
	if m.workloads == 0 {
		fmt.Fprintf(&out, "Every exported workload has the memory that memfit recommends (%d).\n", m.same)
	} else {
		fmt.Fprintf(&out, "memfit recommends other sizes for %s", format.Count(m.workloads, "workload"))
		if m.same > 0 {
			fmt.Fprintf(&out, "; %d more have the recommended size", m.same)
		}
		out.WriteString(". The reasons are below the table.\n\n| workload | container | limit | request | decision | " +
			"confidence |\n|---|---|---|---|---|---|\n")
		out.Write(m.rows.Bytes())
	}
	if m.omitted > 0 {
		fmt.Fprintf(&out, "\n%s more do not fit here: see the comments of the files.\n",
			format.Count(m.omitted, "workload"))
	}
	out.Write(m.reasons.Bytes())
	if m.left.Len() > 0 {
		out.WriteString("\n### Left out\n\n" + fence(m.left.String()))
	}
	return out.Bytes()
}

// cell shows the template's value and the recommended one; without a recommendation nothing changes.
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

// code quotes a word so that Markdown and GitHub show it unchanged: no link, mention or table column.
func code(word string) string {
	word = strings.Map(func(r rune) rune {
		if r == '`' || r == '|' || r < ' ' {
			return ' '
		}
		return r
	}, word)
	return "`" + word + "`"
}

// fence shows the lines of a comment verbatim. Each is indented more than a fence may be, so that none ends the block.
func fence(comment string) string {
	var out strings.Builder
	out.WriteString("```text\n")
	for line := range strings.Lines(comment) {
		out.WriteString("    " + strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	return out.String() + "```\n"
}
