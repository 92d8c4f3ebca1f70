// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Tier is the required certainty about the runtime for a setting.
type Tier string

// The tiers. docs/reference/settings.md lists what is never set.
const (
	// TierA cannot stop any process: unknown settings are ignored.
	TierA Tier = "A"
	// TierB can stop the wrong process or version: only with a declared runtime or an unambiguous command.
	TierB Tier = "B"
)

// Follows is how a setting depends on the container's memory limit, and so the effect of a resize.
type Follows string

// The dependencies.
const (
	// Nothing: the setting does not depend on the limit.
	Nothing Follows = ""
	// Literal: a number computed from the limit at admission. It remains for the pod's life, also over restarts.
	Literal Follows = "Literal"
	// AtStart: a share that the runtime applies to the limit each time it starts; a restart adopts a new limit.
	AtStart Follows = "AtStart"
)

// Runtime is one row of the table: one language runtime.
type Runtime struct {
	Name  string // the value of runtime.type in a MemoryProfile
	Title string // its common name: "Node.js"
	Order int    // its position in lists for users, from 1; rows without one follow, by name
	// Commands are basenames of programs that are certainly this runtime. "python3*" also matches digits and dots.
	Commands []string
	// Images are images for it, by their documentation; see [ByImage]. They are only a suggestion for users.
	Images   []Image
	Marks    []Mark   // its traces in a running process; see [Mark]
	Sights   []Sight  // the versions from which it sizes its heap by the container's limit, the oldest first
	Variants []string // its builds with different settings, as in runtime.variant
	Knobs    []Knob   // the settings, in their order in a shared variable
	// Fold normalizes text for signs, for runtimes with several spellings of a flag. nil: unchanged.
	Fold    func(string) string
	Reads   []string // names of knobs whose user values affect other knobs; see [Facts.Own]
	Sources []string // the variables from which it reads flags itself, the weakest first; "" is its command line
	Checks  []Check
	// Heap names the knob that caps the managed heap; empty if none does.
	Heap string
	// HeapByProgram names the knob with which a program caps its heap itself, instead of Heap; empty if none does.
	HeapByProgram string
	HeapFixed     []Sign     // signs of a user's heap cap in bytes
	Launchers     []Launcher // variables from which start scripts in images take the heap cap, sorted by name
	// NoHeapLimit is why its profile must not set tuning.heapLimit: "is not for ...: use ...". Empty: it may.
	NoHeapLimit string
	// Growth returns how the runtime uses a limit with (set) or without memfit's heap knob. nil: unknown.
	Growth     func(f Facts, set bool) Growth
	FullHeap   FullHeap
	HeapReader string     // the name of the reader of its managed heap (internal/attribution); empty: none
	MaxHeap    string     // that reader's detail with the maximum heap of the process; empty: none
	Levers     []Lever    // actions that may give memory of a running process back, with their gains
	Advisories []Advisory // known facts about versions
	Advice     string     // a hint for every version; may be empty
}

// Knob is one setting.
type Knob struct {
	Name string // its common name, also in tuning.replace: "GOMEMLIMIT", "--max-old-space-size"
	Env  string // its environment variable
	// List is how the variable's value is split into several settings. nil: the value is the setting.
	List    *Grammar
	Tier    Tier    // the required certainty about the runtime
	Follows Follows // how the setting follows a resize
	// Guard are words before the setting, once per variable, so that versions that do not know it start anyway.
	Guard  []string
	SkipIf []Sign // signs of the user's own decision, or of harm; the first match is the reason
	// Needs names a knob that memfit must also set; empty: none.
	Needs string
	// Form is a regular expression of valid settings, for tests. Others stop a process or have another meaning, such as
	// GOMEMLIMIT=512Mi.
	Form   string
	Derive func(Facts) Verdict
	// Caps returns the heap that a text of the variable allows under a limit; 0: unknown. nil: it is not a hard cap.
	Caps func(text string, limit memory.Bytes) memory.Bytes
	// Turns returns the heap at which the runtime collects all it can, for soft caps; 0: unknown. nil: Caps, or unknown.
	Turns func(text string) memory.Bytes
	// MinPercentOfLive is the least cap, in percent of the observed live heap: the lowest RSS between collections of
	// processes without a cap, an upper bound that includes garbage and memory besides the heap.
	MinPercentOfLive int32
}

// Sign is something in a container that makes memfit skip a setting.
type Sign struct {
	Text string // searched literally, after [Runtime.Fold] of both texts
	In   Where  // the place of the search
	// Why ends the sentence "X skipped: PLACE has TEXT, ...". Empty: "and the user's value wins".
	Why string
	// UnlessDivided is true if the sign shows an unknown number of processes, so it does not count with [Facts.Processes].
	UnlessDivided bool
	// UnlessSince: the sign does not count if the version is certainly this one or later. Zero: it always counts.
	UnlessSince Version
}

// Where is where a sign is searched.
type Where int

// The places.
const (
	// Anywhere: in command, args and every literal environment value, because a script's text may become a command line.
	Anywhere Where = iota
	// InCommand: a word of command or args whose basename is the text.
	InCommand
	// AsVariable: an environment variable of that name, with any source. A trailing "*" makes it a prefix.
	AsVariable
)

// Launcher is a variable from which a start script in an image takes the heap cap, which then wins over memfit's and
// may not follow the limit.
type Launcher struct {
	Name   string // the variable
	Holds  Holds  // the format of the value
	Of     string // the owner of the start script: "Cassandra"
	Source string // its documentation
}

// Holds is the format of a [Launcher]'s value.
type Holds string

// The formats. A variable with flags sets a cap only if it has such a flag; all others always do.
const (
	HoldsFlags   Holds = "flags"
	HoldsSize    Holds = "a size with the JVM's unit (4G)"
	HoldsMiB     Holds = "MiB, with or without a unit"
	HoldsBytes   Holds = "bytes"
	HoldsPercent Holds = "percent of the limit"
)

// Heap returns the heap that a value of the variable permits; 0: the value has none, or it cannot be read.
func (l Launcher) Heap(value string) memory.Bytes {
	switch _, err := strconv.ParseUint(value, 10, 64); {
	case l.Holds == HoldsMiB && err == nil:
		return jvmHeap(value + "m")
	case l.Holds == HoldsMiB, l.Holds == HoldsSize, l.Holds == HoldsBytes:
		return jvmHeap(value)
	}
	return 0
}

// Folded returns text after [Runtime.Fold].
func (r *Runtime) Folded(text string) string {
	if r.Fold == nil {
		return text
	}
	return r.Fold(text)
}

// Launcher returns the launcher of a variable.
func (r *Runtime) Launcher(variable string) (l Launcher, ok bool) {
	for _, l := range r.Launchers {
		if l.Name == variable {
			return l, true
		}
	}
	return Launcher{}, false
}

// Facts are the input of a setting.
type Facts struct {
	Version Version // the declared version; the zero value is unknown
	Variant string  // "", "HotSpot", "OpenJ9", "NativeImage" or "Buildpack"
	NoGlibc string  // why MALLOC_* settings have no effect here; empty if they may
	// Limit is the effective limit of one process. 0: none.
	Limit memory.Bytes
	// Cgroup is the limit that the runtime sees: Limit and what volumes, a reserve or other processes take. 0: none.
	Cgroup memory.Bytes
	// Processes is the profile's number of processes of the runtime in the container; each has Limit. 0: unset, as one.
	Processes int32
	LimitText string // Limit as users read it: "448Mi (512Mi less 64Mi of memory-backed volumes)"
	// Live is the upper bound of the live heap of one process, measured in replicas without a cap. 0: unknown.
	Live memory.Bytes
	// Proven is a heap cap of running replicas: one as large needs no other evidence. 0: unknown.
	Proven      memory.Bytes
	LimitUnseen bool              // in replicas the runtime sizes its heap by the node, in any version
	Own         map[string]string // the user's values of the knobs in [Runtime.Reads]; empty if not visible in the pod
	Ask         Ask               // the profile's request
}

// parts returns the divisor of the container's limit: at least 1.
func (f Facts) parts() memory.Bytes { return memory.Bytes(max(f.Processes, 1)) }

// share returns percent of the limit as a share of the runtime's visible limit, in tenths of a percent, rounded down.
// It is less than percent if something takes a part unknown to the runtime.
func (f Facts) share(percent int32) (tenths int64) {
	if f.Cgroup <= f.Limit {
		return int64(percent) * 10
	}
	return int64(float64(percent) * 10 * float64(f.Limit) / float64(f.Cgroup))
}

// shareWhy returns the reason of a setting from [Facts.share].
func shareWhy(f Facts, percent int32) string {
	why := fmt.Sprintf("%d %% of %s", percent, f.LimitText)
	if share := f.share(percent); share != int64(percent)*10 {
		why += fmt.Sprintf(", which is %s %% of what the runtime sees", oneDecimal(share))
	}
	return why
}

func oneDecimal(tenths int64) string { return fmt.Sprintf("%d.%d", tenths/10, tenths%10) }

// Ask has the settings in a profile; zero values and nil are unset.
type Ask struct {
	HeapPercent          int32
	HeapLimit            memory.Bytes
	ArenaMax             *int32
	TrimThreshold        memory.Bytes
	TrimInterval         *time.Duration
	AutoMemLimit         bool // go.memoryLimitBy: AUTOMEMLIMIT
	OnlyAtLimit          bool // go.gc: OnlyAtLimit
	Cgo                  bool // go.cgo: Used
	G1PeriodicGCInterval time.Duration
	SemiSpace            memory.Bytes
	WorkersLimited       bool // nodejs.workerThreads: OwnLimits
	ConserveMemory       *int32
}

// Verdict is the result of a knob for some facts: at most one of Value, SkipReason and Suggest.
type Verdict struct {
	Value string // the setting as in the variable: "483183820", "--max-old-space-size=381"
	Why   string // the computation of the value: "90 % of 512Mi"
	Fixed bool   // the profile sets the value itself, so it does not follow the limit even if the knob does
	// AtCreation is true if the value is computed from the limit at creation, although the knob otherwise follows it at
	// each start.
	AtCreation bool
	Warning    string // a message about the value for the creator of the pod
	SkipReason string // why a requested or default setting is skipped
	Suggest    string // advice to try the setting by hand, and why memfit does not set it by default
}

func set(value, why string) Verdict               { return Verdict{Value: value, Why: why} }
func fixed(v Verdict) Verdict                     { v.Fixed = v.Value != ""; return v }
func skip(why string) Verdict                     { return Verdict{SkipReason: why} }
func skipf(format string, args ...any) Verdict    { return skip(fmt.Sprintf(format, args...)) }
func suggest(advice string) Verdict               { return Verdict{Suggest: advice} }
func suggestf(format string, args ...any) Verdict { return suggest(fmt.Sprintf(format, args...)) }
func notRequested() Verdict                       { return Verdict{} }

// Growth is how a runtime uses its limit, from which sizing distinguishes demand from a filled cap.
type Growth struct {
	// FollowsLimit is true if the managed heap is known to grow towards a cap derived from the limit. The peak is then not
	// demand.
	FollowsLimit bool
	// MayFollow is true if the runtime uses HeapPercent by itself, unless the image or its start script sets another cap.
	// A higher limit may then not help a full heap, and a lower one may shrink it.
	MayFollow   bool
	HeapPercent int32 // the heap's maximum share of the limit, in percent; 0 without such a cap
	Soft        bool  // that share only matters near it: use near it is demand, and growth below it is not a filling heap
	// Overhead is the memory besides the heap: code, stacks, buffers; of all processes together. 0: unknown.
	Overhead memory.Bytes
	// Reserve is the part of the limit for anything but the runtime. It does not grow with the limit.
	Reserve memory.Bytes
	// OwnHeap is the heap that a number of the owner permits to all processes together, and OwnHeapBy is its setting; 0:
	// the owner set none.
	OwnHeap   memory.Bytes
	OwnHeapBy string
	Name      string // the runtime's common name: "Node.js"
}

// Advisory is a known fact about a range of versions.
type Advisory struct {
	// Since and Before bound its versions, [Since, Before); zero: unbounded.
	Since, Before Version
	// Variant limits it to one variant; empty: every one.
	Variant string
	Text    string // the problem and what to do
	Source  string // the source of the fact
}

// table has every runtime; Auto, for an unknown one, is first.
var table []*Runtime

// row adds a runtime to the table. Its file calls it in a package variable, so that no other code names the runtime:
//
//	var _ = row(&Runtime{Name: "NodeJS", ...})
func row(r *Runtime) *Runtime {
	table = append(table, r)
	return r
}

// init runs after all package variables, and so after all rows. Sorting makes the order independent of file names.
func init() { table = sorted(table) }

// sorted returns rows in the order for users.
func sorted(rows []*Runtime) []*Runtime {
	return slices.SortedFunc(slices.Values(rows), func(a, b *Runtime) int {
		if a.Order == 0 || b.Order == 0 {
			return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Compare(a.Order, b.Order)
	})
}

// All returns the runtimes in the order of the API's enum.
func All() []*Runtime { return table }

// Lookup finds a runtime by its API name. Unknown names get Auto's row, which is safe for every process.
func Lookup(name string) *Runtime {
	for _, r := range table {
		if r.Name == name {
			return r
		}
	}
	return auto
}

// TitleOf returns the common name of a runtime of the API: "Java" for JVM. Unknown names are unchanged.
func TitleOf(name string) string {
	if r := Lookup(name); r.Name == name {
		return r.Title
	}
	return name
}

// ByCommand finds the runtime of a program by its path or basename; nil if uncertain.
func ByCommand(program string) *Runtime {
	base := path.Base(program)
	for _, r := range table {
		for _, pattern := range r.Commands {
			if matches(pattern, base) {
				return r
			}
		}
	}
	return nil
}

func matches(pattern, base string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	if !open {
		return base == pattern
	}
	rest, ok := strings.CutPrefix(base, prefix)
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// ByHeapReader finds the runtime with this reader of internal/attribution; nil: none.
func ByHeapReader(reader string) *Runtime {
	for _, r := range table {
		if reader != "" && r.HeapReader == reader {
			return r
		}
	}
	return nil
}

// Advise returns suggestions and the advisories that apply to f, in the order of the table.
func (r *Runtime) Advise(f Facts) []string {
	if r.Advice == "" {
		return r.Known(f)
	}
	return append([]string{r.Advice}, r.Known(f)...)
}

// Known returns only the facts about the version that f declares.
func (r *Runtime) Known(f Facts) []string {
	var out []string
	for _, a := range r.Advisories {
		if a.holds(f) {
			out = append(out, a.Text)
		}
	}
	return out
}

func (a Advisory) holds(f Facts) bool {
	// without a variant, versions are HotSpot versions
	if a.Variant != "" || f.Variant == openJ9 || f.Variant == nativeImage {
		return a.Variant == f.Variant
	}
	return f.Version.Known() && (!a.Since.Known() || f.Version.AtLeast(a.Since)) &&
		(!a.Before.Known() || f.Version.Below(a.Before))
}
