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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Orders are the sort keys of containers; the first is the default.
var Orders = []string{"use", "share", "free", "unexplained", "name"}

// Sort sorts containers by one of Orders, the largest first and unknown sizes last, then by namespace and pod.
func Sort(all []Container, by string) {
	slices.SortStableFunc(all, func(a, b Container) int {
		return cmp.Or(
			cmp.Compare(b.sortKey(by), a.sortKey(by)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod),
		)
	})
}

// sortKey returns the value of a container for one of Orders; negative: unknown.
func (c *Container) sortKey(by string) memory.Bytes {
	switch by {
	case "name":
		return 0
	case "share":
		if c.Use == nil || c.Limit == nil || c.Limit.IsZero() {
			return -1
		}
		// hundredths of a percent
		return memory.Bytes(1e4 * c.Use.AsApproximateFloat64() / c.Limit.AsApproximateFloat64())
	case "free", "unexplained":
		if c.Parts == nil {
			return -1
		}
		if by == "free" {
			return memory.FromQuantity(c.Parts.Free)
		}
		return memory.FromQuantity(c.Parts.Unexplained)
	}
	if c.Use == nil {
		return -1
	}
	return memory.FromQuantity(*c.Use)
}

var (
	topColumns = []string{
		"POD", "CONTAINER", "RUNTIME", "USE", "LIMIT", "HEAP", "FREE", "NATIVE", "FILES", "UNEXPLAINED",
	}
	topWide = []string{"WORKLOAD", "NODE", "LAST KILL"}
)

// WriteTop prints a line for each container, and notes for users below the table.
func WriteTop(w io.Writer, all []Container, o listing.Options) error {
	l := listing.List{
		Kind: "ContainerMemoryList", Columns: topColumns, Wide: topWide, Notes: missing(all),
	}
	for i := range all {
		c := &all[i]
		cells := append([]string{c.Pod, c.Name, c.Runtime.String(), c.use(), size(c.Limit)}, c.Parts.cells()...)
		l.Items = append(l.Items, listing.Item{
			Object: c, Namespace: c.Namespace, Name: "pod/" + c.Pod,
			Cells: append(cells, c.typed(), c.Node, killedAt(c.LastKill)),
		})
	}
	return l.Print(w, o)
}

func killedAt(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return format.Time(at.Time)
}

// cells returns the columns HEAP to UNEXPLAINED, empty if the parts are unknown.
func (p *Parts) cells() []string {
	if p == nil {
		return make([]string, 5)
	}
	return []string{size(&p.Heap), size(&p.Free), size(&p.Native), size(&p.Files), size(&p.Unexplained)}
}

// String returns the runtime, with a question mark if it is only suggested: "Node.js 20.18.1", "Java 17?".
func (r Runtime) String() string {
	text := strings.TrimSpace(r.Title + " " + r.Version)
	if text != "" && r.From == FromSpec {
		text += "?"
	}
	return text
}

func (c *Container) use() string {
	if c.Use == nil {
		return ""
	}
	text := size(c.Use)
	if c.Limit != nil && !c.Limit.IsZero() {
		text += fmt.Sprintf(" (%.0f%%)", 100*c.Use.AsApproximateFloat64()/c.Limit.AsApproximateFloat64())
	}
	return text
}

// missing returns notes that explain empty columns and question marks.
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
		fmt.Fprintf(&b, "%s without a breakdown: %s\n", format.Count(counts[why], "container"), why)
	}
	if suggested > 0 {
		fmt.Fprintf(&b, "A runtime with a question mark is suggested by image, command and variables: "+
			"no agent inspected the process\n")
	}
	if noUse > 0 {
		fmt.Fprintf(&b, "%s without use: neither an agent nor metrics.k8s.io reports it\n", format.Count(noUse, "container"))
	}
	return b.String()
}

func size(q *resource.Quantity) string {
	if q == nil {
		return "none"
	}
	return memory.FromQuantity(*q).String()
}
