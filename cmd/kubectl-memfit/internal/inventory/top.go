// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Orders are the values of --sort.
var Orders = []string{"use", "share", "free", "unexplained", "name"}

// Sort puts the largest first; containers of which the number is not known come last, and equal ones by name.
func Sort(all []Container, by string) {
	slices.SortStableFunc(all, func(a, b Container) int {
		return cmp.Or(cmp.Compare(b.size(by), a.size(by)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
}

// size is what a container is ordered by; less than 0: not known.
func (c *Container) size(by string) memory.Bytes {
	switch by {
	case "name":
		return 0
	case "share":
		if c.Use == nil || c.Limit == nil || c.Limit.IsZero() {
			return -1
		}
		// In hundredths of a percent, as an order needs no unit.
		return memory.Bytes(1e4 * c.Use.AsApproximateFloat64() / c.Limit.AsApproximateFloat64())
	case "free", "unexplained":
		switch {
		case c.Parts == nil:
			return -1
		case by == "free":
			return memory.FromQuantity(c.Parts.Free)
		}
		return memory.FromQuantity(c.Parts.Unexplained)
	}
	if c.Use == nil {
		return -1
	}
	return memory.FromQuantity(*c.Use)
}

// Table says how to print rows.
type Table struct {
	// Namespaces adds a column with the namespace. NoHeaders leaves nothing but the rows.
	Namespaces, NoHeaders bool
}

// WriteTop prints a line for each container, and below what is missing.
func WriteTop(w io.Writer, all []Container, t Table) error {
	rows := [][]string{{"POD", "CONTAINER", "RUNTIME", "USE", "LIMIT", "HEAP", "FREE", "NATIVE", "FILES", "UNEXPLAINED"}}
	if t.Namespaces {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
	}
	for i := range all {
		c := &all[i]
		row := []string{c.Pod, c.Name, c.Runtime.String(), c.use(), size(c.Limit)}
		row = append(row, c.Parts.cells()...)
		if t.Namespaces {
			row = append([]string{c.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return t.write(w, rows, missing(all))
}

// cells are the columns of parts.
func (p *Parts) cells() []string {
	if p == nil {
		return []string{"-", "-", "-", "-", "-"}
	}
	return []string{size(&p.Heap), size(&p.Free), size(&p.Native), size(&p.Files), size(&p.Unexplained)}
}

// String is what runs, with a question mark where that is only suggested: "Node.js 20.18.1", "Java 17?".
func (r Runtime) String() string {
	text := strings.TrimSpace(r.Title + " " + r.Version)
	switch {
	case text == "":
		return "-"
	case r.From == FromSpec:
		text += "?"
	}
	return text
}

func (c *Container) use() string {
	if c.Use == nil {
		return "-"
	}
	text := size(c.Use)
	if c.Limit != nil && !c.Limit.IsZero() {
		text += fmt.Sprintf(" (%.0f%%)", 100*c.Use.AsApproximateFloat64()/c.Limit.AsApproximateFloat64())
	}
	return text
}

// missing says why some lines have less than others.
func missing(all []Container) string {
	counts := map[string]int{}
	suggested, noUse := 0, 0
	for i := range all {
		if all[i].Missing != "" {
			counts[all[i].Missing]++
		}
		if all[i].Runtime.From == FromSpec {
			suggested++
		}
		if all[i].Use == nil {
			noUse++
		}
	}
	var b strings.Builder
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "Without parts, %s: %s\n", format.Count(counts[why], "container"), why)
	}
	if suggested > 0 {
		fmt.Fprintf(&b, "A runtime with a question mark is what image, command and variables suggest: it was not inspected\n")
	}
	if noUse > 0 {
		fmt.Fprintf(&b, "Without use, %s: neither an agent nor metrics.k8s.io reports it\n", format.Count(noUse, "container"))
	}
	return b.String()
}

// write lays out rows and adds notes below.
func (t Table) write(w io.Writer, rows [][]string, notes string) error {
	if t.NoHeaders {
		rows, notes = rows[1:], ""
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = clean(row[i])
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s   ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if notes != "" {
		b.WriteString("\n" + notes)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// size is an amount in a column.
func size(q *resource.Quantity) string {
	if q == nil {
		return "none"
	}
	return memory.FromQuantity(*q).String()
}

// clean is text of others without what a terminal, or a reader of YAML, would take for more than text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
