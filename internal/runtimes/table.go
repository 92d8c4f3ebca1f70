// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Tier is how sure memfit must be of the runtime before it sets something.
type Tier string

// The tiers. What is never set is in docs/reference/settings.md.
const (
	// TierA cannot stop a process, whatever runs in the container: a runtime that does not know it ignores it.
	TierA Tier = "A"
	// TierB can stop the wrong process or version: only with a declared runtime or an unambiguous command.
	TierB Tier = "B"
)

// Follows is how a setting depends on the container's memory limit, and so what a resize does to it.
type Follows string

// The dependencies.
const (
	// Nothing: the setting does not depend on the limit.
	Nothing Follows = ""
	// Literal: a number computed from the limit at admission. It stays for the container's life, over restarts too.
	Literal Follows = "Literal"
	// AtStart: a share that the runtime applies to the limit each time it starts; a restart picks up a new limit.
	AtStart Follows = "AtStart"
)

// Runtime is one row of the table: what one language runtime understands.
type Runtime struct {
	// Name is the value of runtime.type in a MemoryProfile.
	Name string
	// Title is what people call it: "Node.js".
	Title string
	// Order is its place in lists that people read, counted from 1; those without one come after the others, by name.
	Order int
	// Commands are basenames of programs that are this runtime and nothing else. A trailing "*" matches digits and dots
	// ("python3*" is python3.12).
	Commands []string
	// Images are images that are built for it, as their documentation names them; see [ByImage]. They suggest it to
	// people, and make nothing certain.
	Images []Image
	// Marks are the traces that a running process shows of it; see [Mark].
	Marks []Mark
	// Sights are since which versions it sizes its heap by the container's limit, the oldest first; see
	// [Runtime.SeesLimit].
	Sights []Sight
	// Variants are the builds of it that differ in what they accept, as runtime.variant spells them.
	Variants []string
	// Knobs are the settings, in the order in which they appear in a variable they share.
	Knobs []Knob
	// Fold brings text into the form in which signs are written, for runtimes that accept several spellings of a flag.
	// Nil: as is.
	Fold func(string) string
	// Reads are names of knobs: what the user set in their place, other answers depend on; see [Facts.Own].
	Reads []string
	// Sources are the variables that it takes flags from by itself, the weakest first; "" is its command line, on which
	// scripts also put the text of other variables.
	Sources []string
	// Checks find values of the user's that cannot work.
	Checks []Check
	// Heap names the knob that caps the managed heap; empty if none does.
	Heap string
	// HeapByProgram names the knob with which a program caps its heap itself, instead of Heap; empty if none does.
	HeapByProgram string
	// HeapFixed are the user's own words for a heap cap that is a number.
	HeapFixed []Sign
	// Launchers are variables from which start scripts in images take the heap cap, in order of their names.
	Launchers []Launcher
	// NoHeapLimit is why a profile for it may not state tuning.heapLimit: "is not for ...: use ...". Empty: it may.
	NoHeapLimit string
	// Growth is how the runtime uses a limit when memfit set the heap knob (set) or skipped it (not set): HeapPercent,
	// Soft and Overhead. Nil: none of them is known.
	Growth func(f Facts, set bool) Growth
	// FullHeap is how a process ends whose heap has reached its own cap.
	FullHeap FullHeap
	// HeapReader is what reads its managed heap, as internal/attribution names readers; empty: nothing does.
	HeapReader string
	// MaxHeap is the detail of that reader which is the largest heap that the process allows itself; empty: none is.
	MaxHeap string
	// Levers are what may give memory of a running process back, with what each would give.
	Levers []Lever
	// Advisories are known facts about versions.
	Advisories []Advisory
	// Advice is a hint that holds for every version; empty without one.
	Advice string
}

// Knob is one setting.
type Knob struct {
	// Name is how people call it and how tuning.replace names it: "GOMEMLIMIT", "--max-old-space-size".
	Name string
	// Env is the environment variable that carries it.
	Env string
	// List is how the variable's value is split into words, for variables that carry several settings. Nil: the value is
	// the setting.
	List *Grammar
	// Tier is how sure of the runtime memfit must be.
	Tier Tier
	// Follows is whether a resize leaves the setting behind.
	Follows Follows
	// Guard are words that go before the setting, once per variable, so that versions which do not know it start anyway.
	Guard []string
	// SkipIf are signs that the user has decided, or that the setting would do harm; the first one found is the reason.
	SkipIf []Sign
	// Needs names a knob that memfit must have set as well; empty: none.
	Needs string
	// Form is what the setting may look like for the runtime to read it, as a regular expression. Anything else stops a
	// process or means something else: GOMEMLIMIT=512Mi, DOTNET_GCHeapHardLimitPercent=75, MALLOC_TRIM_THRESHOLD_=128k.
	// Tests hold every value to it.
	Form string
	// Derive computes the setting.
	Derive func(Facts) Verdict
	// Caps returns the heap that a text of the variable allows under a limit, for settings that stop or starve a process
	// which needs more; 0: unknown. Nil: the setting is not such a cap.
	Caps func(text string, limit memory.Bytes) memory.Bytes
	// Turns returns the heap at which a text of the variable has the runtime collect all it can, for settings that give
	// way when more is alive; 0: unknown. Nil: Caps, or nothing, is that.
	Turns func(text string) memory.Bytes
	// MinPercentOfLive is the least that such a cap must be, in percent of the observed live heap (see
	// [Knob.BelowLiveHeap]): the lowest RSS of processes without a cap between collections. That is an upper bound of the
	// live heap: it includes garbage that no collection freed, and the process besides its heap.
	MinPercentOfLive int32
}

// Sign is something in a container whose presence means that a setting is skipped.
type Sign struct {
	// Text is searched literally, both sides after [Runtime.Fold].
	Text string
	// In is where.
	In Where
	// Why ends the sentence "X skipped: PLACE has TEXT, ...". Empty: "and the user's value wins".
	Why string
	// UnlessDivided: the sign shows processes of unknown number, so it counts only where the profile does not set how
	// many there are ([Facts.Processes]).
	UnlessDivided bool
	// UnlessSince: the sign counts only where the version is not certainly this one or a later one. The zero version: it
	// always counts.
	UnlessSince Version
}

// Where is where a sign is searched.
type Where int

// The places.
const (
	// Anywhere: in command, args and every literal environment value. Text of a shell script counts: it may end up on a
	// command line.
	Anywhere Where = iota
	// InCommand: a word of command or args whose basename is the text.
	InCommand
	// AsVariable: an environment variable of that name, however it gets its value. A trailing "*" makes it a prefix.
	AsVariable
)

// Launcher is a variable from which a start script in an image takes the heap cap. The script puts the cap on the
// command line, where it wins over what memfit sets: the cap is the owner's decision, and is not known to follow the
// limit.
type Launcher struct {
	// Name of the variable.
	Name string
	// Holds is how the script reads the value.
	Holds Holds
	// Of names whose start script reads it: "Cassandra".
	Of string
	// Source names where that is documented.
	Source string
}

// Holds is how the value of a [Launcher] is read.
type Holds string

// The ways. Where a variable holds flags, its text sets a cap only if it names one; all others always do.
const (
	HoldsFlags   Holds = "flags"
	HoldsSize    Holds = "a size with the JVM's unit (4G)"
	HoldsMiB     Holds = "MiB, with or without a unit"
	HoldsBytes   Holds = "bytes"
	HoldsPercent Holds = "percent of the limit"
)

// Launcher returns the row for a variable.
func (r *Runtime) Launcher(variable string) (l Launcher, ok bool) {
	byName := func(l Launcher, name string) int { return strings.Compare(l.Name, name) }
	i, ok := slices.BinarySearchFunc(r.Launchers, variable, byName)
	if !ok {
		return Launcher{}, false
	}
	return r.Launchers[i], true
}

// Facts are what a setting is derived from.
type Facts struct {
	// Version is the declared version; the zero value is unknown.
	Version Version
	// Variant is "", "HotSpot", "OpenJ9", "NativeImage" or "Buildpack".
	Variant string
	// NoGlibc is why MALLOC_* settings mean nothing here; empty when they may.
	NoGlibc string
	// Limit is the effective limit: what one process can really have. 0: none.
	Limit memory.Bytes
	// Cgroup is the limit that the runtime sees; larger than Limit when memory-backed volumes, a reserve or other
	// processes of the runtime take a part. 0: none.
	Cgroup memory.Bytes
	// Processes is how many processes of the runtime share the container, as the profile specifies; each can have Limit.
	// 0: unspecified, and one is assumed.
	Processes int32
	// LimitText is Limit as users read it: "448Mi (512Mi less 64Mi of memory-backed volumes)".
	LimitText string
	// Live is the upper bound of the live heap of one process, measured in replicas that ran without a cap. 0: not
	// measured.
	Live memory.Bytes
	// Proven is a heap cap under which replicas run: one as large needs no other evidence. 0: none is known.
	Proven memory.Bytes
	// LimitUnseen: replicas showed that the runtime sizes its heap by the node, whatever its version promises.
	LimitUnseen bool
	// Own are the user's own values of the knobs in [Runtime.Reads]; empty where the pod does not show the value.
	Own map[string]string
	// Ask is what the profile asks for.
	Ask Ask
}

// parts is how many processes the container's limit is divided by: at least 1.
func (f Facts) parts() memory.Bytes { return memory.Bytes(max(f.Processes, 1)) }

// share is percent of the limit as a share of the limit that the runtime sees, in tenths of a percent, rounded down. It
// is less than percent where something takes a part that the runtime knows nothing of.
func (f Facts) share(percent int32) (tenths int64) {
	if f.Cgroup <= f.Limit {
		return int64(percent) * 10
	}
	return int64(float64(percent) * 10 * float64(f.Limit) / float64(f.Cgroup))
}

// shareWhy is the reason of a setting that is [Facts.share].
func shareWhy(f Facts, percent int32) string {
	why := fmt.Sprintf("%d %% of %s", percent, f.LimitText)
	if share := f.share(percent); share != int64(percent)*10 {
		why += fmt.Sprintf(", which is %s %% of what the runtime sees", oneDecimal(share))
	}
	return why
}

func oneDecimal(tenths int64) string { return fmt.Sprintf("%d.%d", tenths/10, tenths%10) }

// Ask is what a profile asks for; zero values and nil are unspecified.
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

// Verdict is what a knob answers for some facts. At most one of Value, SkipReason and Suggest is set; none means that
// nothing was requested.
type Verdict struct {
	// Value is the setting as in the variable: "483183820", "--max-old-space-size=381".
	Value string
	// Why is where the value comes from: "90 % of 512Mi".
	Why string
	// Fixed is true for a value that the profile states outright: it does not follow the limit even where the knob does.
	Fixed bool
	// AtCreation is true for a value that is computed from the limit at creation, although the knob otherwise follows the
	// limit at each start.
	AtCreation bool
	// Warning is what the person who creates the pod should know about the value.
	Warning string
	// SkipReason is why the setting is skipped although it was requested or is the default.
	SkipReason string
	// Suggest is advice to try the setting by hand, with why memfit does not do it unasked.
	Suggest string
}

func set(value, why string) Verdict { return Verdict{Value: value, Why: why} }
func fixed(v Verdict) Verdict       { v.Fixed = v.Value != ""; return v }
func skip(why string) Verdict       { return Verdict{SkipReason: why} }
func suggest(advice string) Verdict { return Verdict{Suggest: advice} }
func notAsked() Verdict             { return Verdict{} }

// Growth is what a runtime does with the memory it is given, which a sizing rule needs to distinguish demand from
// habit. What depends on the container, internal/inject fills in.
type Growth struct {
	// FollowsLimit is true when the managed heap is known to grow towards a cap that is derived from the limit: memfit or
	// the owner set it so where the runtime reads it, or an agent read it. The peak is then no demand.
	FollowsLimit bool
	// MayFollow is true when the runtime takes HeapPercent by itself, and nothing shows whether the image or its start
	// script gave it another cap. A higher limit is then not known to help a full heap, and a lower one may shrink it.
	MayFollow bool
	// HeapPercent is the share of the limit that the heap takes or may take, in percent; 0 without such a cap.
	HeapPercent int32
	// Soft is true when that share only stops the heap near it, and what is alive decides how large it is otherwise. Use
	// near the share is then demand, and growth below it is not a heap that fills.
	Soft bool
	// Overhead is what the runtime needs besides the heap: code, stacks, buffers; of all processes together. 0: not known.
	Overhead memory.Bytes
	// Reserve is what of the limit is kept back for others than the runtime. It does not grow with the limit.
	Reserve memory.Bytes
	// Name is the runtime as people call it: "Node.js".
	Name string
}

// Advisory is a known fact about a range of versions.
type Advisory struct {
	// Since and Before bound the versions it is about, [Since, Before); a zero version does not bound.
	Since, Before Version
	// Variant limits it to one variant; empty: every one.
	Variant string
	// Text is what happens and what to do.
	Text string
	// Source is where the fact comes from.
	Source string
}

// table is every runtime; Auto, for an unknown one, is first. Filled by init, when the rows of all files are there.
var table []*Runtime

// rows are the runtimes as their files name them, in no particular order.
var rows []*Runtime

// row adds a runtime to the table. Its file calls it in a package variable, so that nothing else has to name the
// runtime:
//
//	var _ = row(&Runtime{Name: "NodeJS", ...})
func row(r *Runtime) *Runtime {
	rows = append(rows, r)
	return r
}

// init comes after all package variables, and so after all rows. What is sorted here does not depend on the names of
// files.
func init() { table = sorted(rows) }

// sorted puts rows in the order in which people read them.
func sorted(rows []*Runtime) []*Runtime {
	return slices.SortedFunc(slices.Values(rows), func(a, b *Runtime) int {
		if a.Order == 0 || b.Order == 0 {
			return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Compare(a.Order, b.Order)
	})
}

// All are the runtimes in the order of the API's enum.
func All() []*Runtime { return table }

// Lookup finds a runtime by its API name. Unknown names get Auto's row: what is safe for every process.
func Lookup(name string) *Runtime {
	for _, r := range table {
		if r.Name == name {
			return r
		}
	}
	return auto
}

// TitleOf is what people call a runtime that the API names: "Java" for JVM. A name that memfit does not know stays.
func TitleOf(name string) string {
	if r := Lookup(name); r.Name == name {
		return r.Title
	}
	return name
}

// ByCommand finds the runtime of a program, from its path or basename; nil if the name is not certain.
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

// ByHeapReader finds the runtime whose heap a reader of internal/attribution reads; nil: none has it.
func ByHeapReader(reader string) *Runtime {
	for _, r := range table {
		if reader != "" && r.HeapReader == reader {
			return r
		}
	}
	return nil
}

// Advise is what may be tried, and the advisories that hold for f, in the order of the table.
func (r *Runtime) Advise(f Facts) []string {
	var out []string
	if r.Advice != "" {
		out = append(out, r.Advice)
	}
	return append(out, r.Known(f)...)
}

// Known are only the facts about the version that f declares.
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
	// without a variant, versions are those of HotSpot
	if a.Variant != "" || f.Variant == openJ9 || f.Variant == nativeImage {
		return a.Variant == f.Variant
	}
	return f.Version.Known() && (!a.Since.Known() || f.Version.AtLeast(a.Since)) &&
		(!a.Before.Known() || f.Version.Below(a.Before))
}
