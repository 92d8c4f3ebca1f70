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

// Tier is how certain the runtime must be before memfit writes a setting.
type Tier string

// The tiers. docs/reference/settings.md lists the settings that memfit never writes.
const (
	// TierA settings cannot stop any process: other programs ignore them.
	TierA Tier = "A"
	// TierB settings can stop another runtime or version, so the runtime must be certain.
	TierB Tier = "B"
)

// Follows is how a setting depends on the container's memory limit.
type Follows string

// The dependencies.
const (
	// Nothing: the setting does not depend on the limit.
	Nothing Follows = ""
	// Literal: a number computed from the limit at admission. Only a new pod gets another number.
	Literal Follows = "Literal"
	// AtStart: a share that the runtime applies to the current limit each time it starts.
	AtStart Follows = "AtStart"
)

// Runtime is one row of the table: one language runtime.
type Runtime struct {
	Name  string // the value of runtime.type in a MemoryProfile
	Title string // its common name: "Node.js"
	Order int    // its position in lists for users, from 1; rows without one follow, by name
	// Commands are basenames of programs that are certainly this runtime. "python3*" also matches digits and dots.
	Commands        []string
	Images          []Image          // images that usually run this runtime; see [ByImage]
	Marks           []Mark           // identify the runtime of a running process
	LimitDetections []LimitDetection // ranges of versions, the oldest first
	Variants        []string         // its builds with different settings, as in runtime.variant
	Knobs           []Knob           // the settings, in their order in a shared variable
	// Fold normalizes text before it is searched, for runtimes with several spellings of a flag. nil: unchanged.
	Fold    func(string) string
	Reads   []string // names of knobs whose user values affect other knobs; see [Facts.Own]
	Sources []string // the variables from which it reads flags itself, the weakest first; "" is its command line
	Checks  []Check
	Heap    string // the name of the knob that caps the managed heap; empty: none
	// HeapByProgram is the name of the knob with which a program caps its own heap, instead of Heap; empty: none.
	HeapByProgram string
	HeapFixed     []Sign     // signs of a user's heap cap in bytes
	Launchers     []Launcher // variables from which start scripts in images take the heap cap, sorted by name
	// NoHeapLimit is why profiles must not set tuning.heapLimit: "is not for ...: use ...". Empty: they may.
	NoHeapLimit string
	// Growth returns how the runtime uses a limit with (set) or without memfit's heap knob. nil: unknown.
	Growth     func(f Facts, set bool) Growth
	FullHeap   FullHeap
	HeapReader string     // the reader of its managed heap in internal/attribution; empty: none
	MaxHeap    string     // the name of that reader's detail with the maximum heap; empty: none
	Levers     []Lever    // actions that may return memory of a running process
	Advisories []Advisory // known facts about versions
	Advice     string     // advice for every version; may be empty
}

// Knob is one setting.
type Knob struct {
	Name string // its common name, also in tuning.replace: "GOMEMLIMIT", "--max-old-space-size"
	Env  string // its environment variable
	// List parses a variable that holds several settings. nil: the variable's value is the setting.
	List    *Grammar
	Tier    Tier     // how certain the runtime must be
	Follows Follows  // how the setting depends on the limit
	Guard   []string // words before the setting, once per variable, so that other versions ignore it and start
	SkipIf  []Sign   // signs of the user's own decision, or of harm; the first match is the reason
	Needs   string   // the name of a knob that memfit must also set; empty: none
	// Form is a regular expression of valid settings, for tests.
	Form   string
	Derive func(Facts) Verdict
	// HeapCap returns the heap cap that the variable's text sets under a limit; 0: unknown. nil: the knob is not a hard
	// cap.
	HeapCap func(text string, limit memory.Bytes) memory.Bytes
	// SoftCap returns the heap above which the runtime collects as much as it can; 0: unknown. nil: not a soft cap.
	SoftCap func(text string) memory.Bytes
	// MinPercentOfLive is the least cap, in percent of [Facts.Live].
	MinPercentOfLive int32
}

// Sign is something in a container that makes memfit skip a setting.
type Sign struct {
	Text string // searched literally, after [Runtime.Fold] of both texts
	In   Where  // the place of the search
	// Why ends the sentence "X skipped: PLACE has TEXT, ...". Empty: "and the user's value wins".
	Why string
	// UnlessDivided ignores the sign if the profile sets the number of processes ([Facts.Processes]).
	UnlessDivided bool
	// UnlessSince ignores the sign if the version is certainly this one or later. Zero: never.
	UnlessSince Version
}

// Where is the place in which a sign is searched.
type Where int

// The places.
const (
	// Anywhere: command, args and all literal environment values, which a start script may put on a command line.
	Anywhere Where = iota
	// InCommand: a word of command or args whose basename is Text.
	InCommand
	// AsVariable: an environment variable with the name Text, from any source. A trailing "*" makes Text a prefix.
	AsVariable
)

// Launcher is a variable from which a start script in an image takes the heap cap. That cap wins over memfit's, and may
// not follow the limit.
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

// Heap returns the heap size in a value of the variable; 0: none, or unreadable.
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

// Facts has the data about a container from which [Knob.Derive] derives a setting.
type Facts struct {
	Version   Version      // zero: unknown
	Variant   string       // "", "HotSpot", "OpenJ9", "NativeImage" or "Buildpack"
	NoGlibc   string       // why MALLOC_* settings have no effect here; empty if they may
	Limit     memory.Bytes // the effective limit of one process; 0: none
	LimitText string       // Limit for users: "448Mi (512Mi less 64Mi of memory-backed volumes)"
	// Cgroup is the limit that the runtime reads, which includes volumes, a reserve and other processes. 0: none.
	Cgroup    memory.Bytes
	Processes int32 // the profile's number of processes of the runtime in the container; 0: unset, as one
	// Live is the upper bound of one process's live heap: the lowest RSS between collections in replicas without a cap. It
	// includes garbage and memory besides the heap. 0: unknown.
	Live          memory.Bytes
	ProvenHeapCap memory.Bytes      // the heap cap of running replicas, known to be large enough; 0: unknown
	LimitUnseen   bool              // running replicas of any tag of the image size their heap by the node
	Own           map[string]string // the user's values of the knobs in [Runtime.Reads]; empty if not visible in the pod
	Tuning        Tuning            // the profile's settings
}

// parts returns the number of processes, at least 1.
func (f Facts) parts() memory.Bytes { return memory.Bytes(max(f.Processes, 1)) }

// share converts a percentage of Limit to a share of Cgroup, in tenths of a percent, rounded down.
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

// Tuning has the settings in a profile; zero values and nil are unset.
type Tuning struct {
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

// Verdict is the result of a knob: at most one of Value, SkipReason and Suggest. All are empty for a knob that is not
// requested.
type Verdict struct {
	Value string // the setting as in the variable: "483183820", "--max-old-space-size=381"
	Why   string // the computation of the value: "90 % of 512Mi"
	Fixed bool   // the profile sets the value itself, so it does not follow the limit even if the knob does
	// AtCreation is true if the value depends on the limit at creation, although the knob's [Follows] is AtStart.
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

// Growth describes how a runtime uses its limit. Sizing uses it to distinguish demand from a heap that fills its cap.
type Growth struct {
	// FollowsLimit is true if the heap is known to grow towards a cap derived from the limit. The peak is then not demand.
	FollowsLimit bool
	// MayFollow is true if HeapPercent is the runtime's own default, which the image or its start script may override. A
	// higher limit may then not help a full heap, and a lower one may shrink it.
	MayFollow   bool
	HeapPercent int32        // the heap's maximum share of the limit, in percent; 0: no such cap
	Soft        bool         // the cap affects the heap only near it: usage near it is demand
	Overhead    memory.Bytes // code, stacks and buffers besides the heap, of all processes; 0: unknown
	Reserve     memory.Bytes // the part of the limit that is not for the runtime; it does not grow with the limit
	OwnHeap     memory.Bytes // the heap of all processes that the owner's setting permits in bytes; 0: no such setting
	OwnHeapBy   string       // that setting
	Name        string       // the runtime's common name: "Node.js"
}

// Advisory is a known fact about a range of versions.
type Advisory struct {
	Since, Before Version // the affected versions, [Since, Before); zero: unbounded
	// Variant is the affected variant, in all versions; empty: HotSpot, and every other runtime.
	Variant string
	Text    string // the problem and what to do
	Source  string // the source of the fact
}

// table has all runtimes in the order for users. The first is Auto, for an unknown runtime.
var table []*Runtime

// row adds a runtime to the table. The runtime's file calls it in a package variable, so that no other file changes:
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

// Lookup returns the runtime with an API name. For an unknown name it returns Auto, which is safe for every process.
func Lookup(name string) *Runtime {
	for _, r := range table {
		if r.Name == name {
			return r
		}
	}
	return auto
}

// TitleOf returns the common name for an API name: "Java" for JVM. Unknown names are unchanged.
func TitleOf(name string) string {
	if r := Lookup(name); r.Name == name {
		return r.Title
	}
	return name
}

// ByCommand returns the runtime of a program with this path or basename; nil if uncertain.
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

// ByHeapReader returns the runtime with this [Runtime.HeapReader]; nil: none.
func ByHeapReader(reader string) *Runtime {
	for _, r := range table {
		if reader != "" && r.HeapReader == reader {
			return r
		}
	}
	return nil
}

// Advise returns the runtime's advice, and the advisories that apply to f.
func (r *Runtime) Advise(f Facts) []string {
	if r.Advice == "" {
		return r.VersionAdvisories(f)
	}
	return append([]string{r.Advice}, r.VersionAdvisories(f)...)
}

// VersionAdvisories returns the advisories that apply to the version or variant of f.
func (r *Runtime) VersionAdvisories(f Facts) []string {
	var out []string
	for _, a := range r.Advisories {
		if a.appliesTo(f) {
			out = append(out, a.Text)
		}
	}
	return out
}

func (a Advisory) appliesTo(f Facts) bool {
	// without a variant, versions are HotSpot versions
	if a.Variant != "" || f.Variant == openJ9 || f.Variant == nativeImage {
		return a.Variant == f.Variant
	}
	return f.Version.Known() && (!a.Since.Known() || f.Version.AtLeast(a.Since)) &&
		(!a.Before.Known() || f.Version.Below(a.Before))
}
