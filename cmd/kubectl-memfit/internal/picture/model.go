// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture draws the memory of a pod from its MemorySnapshot, as text or SVG, for `kubectl memfit map`. Each
// container has a bar with a segment for each part and a mark at the limit, and a legend with the numbers. If the
// snapshot has a map of pages, each region is drawn block by block. The package is pure.
package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

// Pod is a pod prepared for drawing.
type Pod struct {
	// Heading is "Pod shop/web-1 on node a, read at 2026-11-20T10:02:00Z".
	Heading    string
	Containers []Container
}

// Container is one bar with its legend.
type Container struct {
	// Heading is "app: Node.js 20.18.1, glibc 2.36", or the name alone.
	Heading   string
	Charged   memory.Bytes // what the kernel counts against the limit; 0: unknown
	Resident  memory.Bytes // memory of the processes in RAM; 0: unknown
	Processes int32
	Limit     memory.Bytes // the effective limit; 0: none
	Parts     []Part       // segments of the bar from left to right
	Notes     []string     // sentences below the legend
	Pages     []Pages      // regions to draw block by block; nil: the snapshot has no map of pages
	NotDrawn  memory.Bytes // resident memory of all other regions
}

// Part is one segment of a bar.
type Part struct {
	// Letter marks the part in bar and legend.
	Letter byte
	Name   string
	// Size is the resident memory of the part, and Free how much of it is free.
	Size, Free memory.Bytes
	// Color is an index into the palette.
	Color int
}

// color is one color of the palette, for a picture and for a terminal.
type color struct {
	// Hex is distinguishable with any kind of color vision: the palette of Okabe and Ito (2008), "Color Universal Design".
	Hex string
	// background is the bright background of a terminal (aixterm), on which black letters are readable.
	background int
}

// palette has the colors of parts, then the colors of smaller parts, unexplained memory, and memory outside the parts.
var palette = [...]color{
	{"#0072B2", 104}, {"#E69F00", 103}, {"#009E73", 102}, {"#CC79A7", 105}, {"#56B4E9", 106}, {"#D55E00", 101},
	{"#F0E442", 43}, {"#7F5539", 46},
	{"#9A9A9A", 47}, {"#404040", 100}, {"#DCDCDC", 107},
}

// Indices into the palette.
const (
	ownColors        = 8 // number of parts with their own color
	smallerColor     = 8
	unexplainedColor = 9
	cacheColor       = 10
)

// Marks of the parts that have no letter.
const (
	smallerMark     = '*'
	unexplainedMark = '?'
	cacheMark       = '+'
)

// New prepares the named container of a snapshot for drawing, or all containers if container is empty.
func New(s *v1alpha1.MemorySnapshot, container string) (Pod, error) {
	p := Pod{Heading: fmt.Sprintf("Pod %s/%s on node %s, read at %s", s.Namespace, s.Name, quote.Plain(s.Status.NodeName),
		format.Time(s.Status.ObservedTime.Time))}
	var names []string
	for i := range s.Status.Containers {
		c := &s.Status.Containers[i]
		names = append(names, quote.Plain(c.Container))
		if container == "" || c.Container == container {
			p.Containers = append(p.Containers, containerOf(c))
		}
	}
	if container != "" && len(p.Containers) == 0 {
		return p, fmt.Errorf("no container %q: name one of %s", container, strings.Join(names, ", "))
	}
	return p, nil
}

func containerOf(c *v1alpha1.ContainerSnapshot) Container {
	out := Container{
		Heading: quote.Plain(c.Container), Charged: report.Bytes(c.Usage), Limit: report.Bytes(c.Limit),
	}
	if runtime := report.RuntimeOf(c.Runtime); runtime != "" {
		out.Heading += ": " + runtime
	}
	if m := c.Memory; m != nil {
		out.Resident, out.Processes = report.Bytes(&m.Resident), m.Processes
		out.Parts = parts(m)
		out.Notes = notes(m)
		out.addCache()
	} else {
		out.Parts = withoutParts(c)
		out.Notes = append(out.Notes, quote.Plain(report.NotInspected(c)))
	}
	out.pages(c.Map)
	return out
}

// parts returns the parts of a container. The largest parts have a color each; the others are merged into one segment.
func parts(m *v1alpha1.MemoryParts) []Part {
	var out []Part
	rest := Part{Letter: smallerMark, Color: smallerColor}
	more := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		size, free := report.PartSize(p)
		if i < ownColors {
			out = append(out, Part{Letter: byte('A' + i), Name: quote.Plain(p.Name), Size: size, Free: free, Color: i})
			continue
		}
		rest.Size, rest.Free = rest.Size.Plus(size), rest.Free.Plus(free)
		more++
	}
	if more > 0 {
		rest.Name = format.Count(more, "smaller part")
		out = append(out, rest)
	}
	return append(out, Part{
		Letter: unexplainedMark, Name: "unexplained", Color: unexplainedColor, Size: report.Unexplained(m),
	})
}

// withoutParts returns the parts of a container whose processes were not inspected, from the kernel's counters.
func withoutParts(c *v1alpha1.ContainerSnapshot) []Part {
	if c.Usage == nil {
		return nil
	}
	all := report.Bytes(c.Usage)
	demand := min(report.Bytes(c.Demand), all)
	return []Part{
		{Letter: unexplainedMark, Color: unexplainedColor, Name: "not inspected", Size: demand},
		{Letter: cacheMark, Color: cacheColor, Name: "page cache, which the kernel can drop", Size: all.Minus(demand)},
	}
}

// addCache adds a part for memory that is charged and not resident, or a note if more memory is resident than charged:
// each process counts shared pages.
func (c *Container) addCache() {
	sum := c.total()
	switch {
	case c.Charged > sum:
		c.Parts = append(c.Parts, Part{
			Letter: cacheMark, Name: "page cache and kernel", Size: c.Charged.Minus(sum), Color: cacheColor,
		})
	case c.Charged > 0 && c.Charged < sum:
		c.Notes = append(c.Notes, fmt.Sprintf("%s is resident and not charged to this container: shared pages, or files "+
			"that another container read first", sum.Minus(c.Charged)))
	}
	if sum.Minus(c.Resident) > c.Resident.Percent(sumTolerance) {
		c.Notes = append(c.Notes, fmt.Sprintf("the parts add up to %s, but only %s is resident", sum, c.Resident))
	}
}

// sumTolerance is the difference, in percent, that needs no note: memory changes while the agent reads it.
const sumTolerance = 2

// coverageGoodPercent is the coverage, in percent, below which amounts of free memory are lower bounds, as in the API.
const coverageGoodPercent = 95

func notes(m *v1alpha1.MemoryParts) (out []string) {
	if m.Summary != "" {
		out = append(out, quote.Plain(m.Summary))
	}
	if m.CoveragePercent < coverageGoodPercent {
		out = append(out, fmt.Sprintf("only %d %% of the inspected memory was readable: more memory may be free than shown",
			m.CoveragePercent))
	}
	return out
}

// Legend returns the parts to list: the unexplained part, and all parts that are not empty.
func (c *Container) Legend() []Part {
	empty := func(p Part) bool { return p.Size == 0 && p.Letter != unexplainedMark }
	return slices.DeleteFunc(slices.Clone(c.Parts), empty)
}

func (c *Container) total() (sum memory.Bytes) {
	for _, p := range c.Parts {
		sum = sum.Plus(p.Size)
	}
	return sum
}

// scale returns the memory that the whole width represents.
func (c *Container) scale() memory.Bytes { return max(c.total(), c.Limit, 1) }

// Share returns an amount as a percentage of the limit, or of the whole bar without a limit.
func (c *Container) Share(b memory.Bytes) string {
	return fmt.Sprintf("%.0f %%", 100*float64(b)/float64(cmp.Or(c.Limit, c.total(), 1)))
}

// Summary returns the line above a bar.
func (c *Container) Summary() string {
	var facts []string
	switch {
	case c.Charged > 0 && c.Limit > 0:
		facts = append(facts, fmt.Sprintf("%s charged of a limit of %s (%s)", c.Charged, c.Limit, c.Share(c.Charged)))
	case c.Charged > 0:
		facts = append(facts, fmt.Sprintf("%s charged, no limit", c.Charged))
	}
	if c.Resident > 0 {
		facts = append(facts, fmt.Sprintf("%s resident in %s", c.Resident, processes(c.Processes)))
	}
	if free := c.free(); free > 0 {
		facts = append(facts, fmt.Sprintf("%s of that free", free))
	}
	if len(facts) == 0 {
		return "not running"
	}
	return strings.Join(facts, ", ")
}

func processes(n int32) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

func (c *Container) free() (sum memory.Bytes) {
	for _, p := range c.Parts {
		sum = sum.Plus(p.Free)
	}
	return sum
}

// cells divides a width among the parts of a bar, each in use and free, without accumulating rounding errors.
func (c *Container) cells(width int) (inUse, free []int) {
	scale, at, drawn := float64(c.scale()), memory.Bytes(0), 0
	next := func(size memory.Bytes) int {
		at = at.Plus(size)
		border := int(float64(at)*float64(width)/scale + 0.5)
		n := border - drawn
		drawn = border
		return n
	}
	for _, p := range c.Parts {
		inUse = append(inUse, next(p.Size.Minus(p.Free)))
		free = append(free, next(p.Free))
	}
	return inUse, free
}
