// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// ownersCap is the owner's decision about the heap cap, as visible in the pod.
type ownersCap struct {
	by       string // the source of the decision: "KAFKA_HEAP_OPTS has -Xmx2g". Empty: none
	fixed    bool   // the cap is not known to follow the limit
	launcher bool   // a start script takes the cap from a variable and overrides memfit's settings
	unsure   string // describes a source that memfit does not read and that may set a cap; empty: none
	percent  int32  // the owner's share of the limit; 0: none, or unreadable
	// direct is true if the share is on the command line or in the variable that the runtime reads. Any other share takes
	// effect only if a start script uses it.
	direct bool
	heap   memory.Bytes // the largest heap that the owner's numbers permit to one process; 0: none
	number string       // the setting with that number
}

func (o *ownersCap) recordHeap(heap memory.Bytes, setting string) {
	if heap > o.heap {
		o.heap, o.number = heap, setting
	}
}

// ownersCap finds the owner's cap in the pod without memfit's settings. Call it before any setting is written.
func (w *working) ownersCap(in Input, t target, r *runtimes.Runtime) ownersCap {
	heap := knob(r, r.Heap)
	if heap == nil {
		return ownersCap{}
	}
	s := setting{knob: heap, runtime: r}
	for _, sign := range r.HeapFixed {
		if where := w.findSign(s, sign); where != "" {
			return ownersCap{by: where, fixed: true}
		}
	}
	if c := w.launcher(in, t, r); c.launcher {
		return c
	}
	c := w.ownersShare(s)
	c.unsure = w.unreadable(in, t, s)
	return c
}

// knob returns the runtime's knob with this name; nil: not found.
func knob(r *runtimes.Runtime, name string) *runtimes.Knob {
	for i := range r.Knobs {
		if name != "" && r.Knobs[i].Name == name {
			return &r.Knobs[i]
		}
	}
	return nil
}

// launcher returns the cap that a start script takes from a variable, with its number if readable.
func (w *working) launcher(in Input, t target, r *runtimes.Runtime) (c ownersCap) {
	for i := range w.env {
		v := &w.env[i]
		l, known := r.Launcher(v.Name)
		if !known || v.Absent || l.Holds == runtimes.HoldsFlags {
			continue
		}
		text := v.Name + "=" + shorten(v.Value)
		if v.ValueFrom != nil {
			text = v.Name + " from " + fromWhere(v.ValueFrom)
		} else {
			c.recordHeap(l.Heap(v.Value), text)
		}
		c.by, c.fixed, c.launcher = text+" sets the heap cap in the start script of "+l.Of, true, true
		return c
	}
	for _, l := range r.Launchers {
		if l.Holds == runtimes.HoldsFlags {
			continue
		}
		if from := configMapWith(in, t, l.Name); from != "" {
			by := fmt.Sprintf("%s from ConfigMap %s (envFrom) sets the heap cap in the start script of %s", l.Name,
				shorten(from), l.Of)
			return ownersCap{by: by, fixed: true, launcher: true}
		}
	}
	return ownersCap{}
}

// configMapWith returns the name of a readable ConfigMap that sets the variable through envFrom; empty: none.
func configMapWith(in Input, t target, variable string) string {
	for _, from := range t.container.EnvFrom {
		key, fits := strings.CutPrefix(variable, from.Prefix)
		if !fits || from.ConfigMapRef == nil {
			continue
		}
		if name := from.ConfigMapRef.Name; in.ConfigMapKeys[name][key] {
			return name
		}
	}
	return ""
}

// ownersShare returns the owner's share of the limit, from a flag in any source, or from the knob's own variable.
func (w *working) ownersShare(s setting) ownersCap {
	if s.knob.HeapCap == nil || s.knob.Follows != runtimes.AtStart {
		return ownersCap{}
	}
	for _, src := range w.sources {
		if s.knob.List == nil && src.name != s.knob.Env {
			continue
		}
		if share := s.knob.HeapCap(src.text, 100*memory.MiB).MiB(); share > 0 {
			return ownersCap{
				by: src.title + " sets " + s.knob.Name, percent: int32(share), //nolint:gosec // at most 100
				direct: src.name == "" || src.name == s.knob.Env,
			}
		}
	}
	return ownersCap{}
}

// unreadable describes a source that memfit does not read and that may set a heap cap; empty: none.
func (w *working) unreadable(in Input, t target, s setting) string {
	for i := range w.env {
		v := &w.env[i]
		if v.Absent || v.ValueFrom == nil {
			continue
		}
		if _, flags := s.runtime.Launcher(v.Name); flags || v.Name == s.knob.Env {
			return fmt.Sprintf("%s comes from %s, which memfit does not read", v.Name, fromWhere(v.ValueFrom))
		}
	}
	if len(s.runtime.Launchers) == 0 {
		return ""
	}
	for _, from := range t.container.EnvFrom {
		if from.ConfigMapRef == nil {
			return "variables come from envFrom, which memfit does not read"
		}
		if name := from.ConfigMapRef.Name; in.ConfigMapKeys[name] == nil {
			return fmt.Sprintf("variables come from ConfigMap %s (envFrom), whose keys memfit does not know", shorten(name))
		}
	}
	for _, l := range s.runtime.Launchers {
		if from := configMapWith(in, t, l.Name); from != "" {
			return fmt.Sprintf("%s comes from ConfigMap %s (envFrom), which memfit does not read", l.Name, shorten(from))
		}
	}
	return ""
}

// heapSetting returns memfit's setting that caps the heap; nil: none.
func (c *ContainerPlan) heapSetting() *setting {
	r := c.runtime.runtime
	for i := range c.set {
		if s := &c.set[i]; s.knob.Name == r.Heap || s.knob.Name == r.HeapByProgram {
			return s
		}
	}
	return nil
}

// capIsLiteral reports whether memfit sets the cap as a number, which only a new pod changes.
func (c *ContainerPlan) capIsLiteral() bool {
	s := c.heapSetting()
	return s != nil && s.follows() == runtimes.Literal
}

// heapFollows returns the heap cap as a percentage of the limit. known: the cap follows the limit. may: the cap follows
// it unless the image sets another one. own is the runtime's percentage.
func (c *ContainerPlan) heapFollows(own int32) (known, may bool, percent int32) {
	ours := c.heapSetting()
	switch {
	case c.heapByNode, ours == nil && c.facts.LimitUnseen: // shares are of the node's memory
		return false, false, 0
	case ours != nil && (ours.verdict.Fixed || c.facts.Tuning.HeapLimit > 0):
		return false, false, 0
	case ours != nil && (c.owner.unsure == "" || sameShare(c.found, own)):
		return own > 0, false, own
	case ours != nil:
		return false, own > 0, own
	case c.owner.fixed:
		return false, false, 0
	case c.owner.percent > 0 && c.owner.direct && c.owner.unsure == "":
		return true, false, c.owner.percent
	case c.owner.percent > 0:
		own = c.owner.percent
	}
	return sameShare(c.found, own), own > 0 && !sameShare(c.found, own), own
}

// sameShare reports whether a measured percentage is the expected one. HotSpot rounds the heap up.
func sameShare(read, expected int32) bool {
	return expected > 0 && read > 0 && max(expected, read)-min(expected, read) <= 1
}

// CapSetBy describes what sets the heap cap instead of memfit, with an instruction; empty: nothing does.
func (c *ContainerPlan) CapSetBy() string {
	if c.heapSetting() != nil && c.owner.unsure == "" {
		return ""
	}
	switch o := c.owner; {
	case o.by != "":
		return o.by + ": raise the heap cap there"
	case o.unsure != "":
		return o.unsure + ": if it caps the heap, raise the cap there"
	}
	return ""
}

// adviseCap adds advice about the owner's heap cap, unless a skipped setting already reports the cap.
func (c *ContainerPlan) adviseCap() {
	reported := slices.ContainsFunc(c.skips, func(s skip) bool { return s.name == c.runtime.runtime.Heap })
	if c.owner.fixed && !reported && c.heapSetting() == nil {
		c.advise(c.owner.by + ": that is the owner's decision, and a higher limit does not raise it, so change both together")
	}
}

// StartHeapCap is the heap cap of a running process, which a resize of the limit does not change.
type StartHeapCap struct {
	Cap      memory.Bytes // the heap cap of all processes together; 0: unknown
	Overhead memory.Bytes // the runtime's memory besides the heap, plus the owner's reserve
	Literal  bool         // the cap is a number in the pod's environment, which a restart of the container does not change
	For      memory.Bytes // the container's limit that a literal cap was derived from; 0: unknown
	Hard     bool         // the process ends at its cap; otherwise the garbage collector runs continuously
}

// StartHeapCap returns the heap cap at the start of a container, if the cap is or may be a share of the limit. It uses
// the larger of the limits at admission and now, because the process may have started under either.
func (c *ContainerPlan) StartHeapCap() StartHeapCap {
	growth := c.Growth()
	if growth.HeapPercent == 0 {
		return StartHeapCap{}
	}
	f := StartHeapCap{
		Overhead: growth.Overhead.Plus(growth.Reserve), Literal: c.capIsLiteral(),
		Hard: len(c.runtime.runtime.FullHeap.Exits) > 0,
	}
	atAdmission := c.before.atAdmission() * c.before.parts()
	now := c.limit.effective * c.limit.division.parts()
	from := max(atAdmission, now)
	if f.Literal && atAdmission > 0 {
		from = atAdmission
		f.For = atAdmission.Plus(c.limit.cgroup.Minus(now)) // with volumes and the reserve
	}
	f.Cap = from.Percent(growth.HeapPercent)
	return f
}
