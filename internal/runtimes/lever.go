// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// Lever is an action that may return memory of a running process to the kernel: a call, a collection, or a setting for
// the next start. Its gain is computed from the process's memory as read by internal/attribution.
type Lever struct {
	// Action is in users' terms: "malloc_trim". The gains of a container's processes are added up by Action.
	Action string
	Knob   string // the name of the runtime's knob for this action; empty: none
	How    string // the instruction
	// Unreachable is true if programs of this runtime cannot run the action. The gain then only measures free memory.
	Unreachable bool
	Reader      string // the reader of internal/attribution whose result Gain uses
	// Gain computes the gain from that result; ok is false if the action does not apply to the process.
	Gain func(Process, amounts.Usage) (g Gain, ok bool)
}

// Predict returns the lever's gain in a process; ok is false if the action does not apply, or the reader's result is
// missing or incomplete.
func (l *Lever) Predict(p Process) (g Gain, ok bool) {
	u, ok := p.usage(l.Reader)
	if !ok {
		return noGain()
	}
	return l.Gain(p, u)
}

// usage returns the result of a reader; ok is false if it is missing, or its coverage is too low.
func (p *Process) usage(reader string) (u amounts.Usage, ok bool) {
	i := slices.IndexFunc(p.Usages, func(u amounts.Usage) bool { return u.Reader == reader })
	if i < 0 || !p.Usages[i].Understood() {
		return amounts.Usage{}, false
	}
	return p.Usages[i], true
}

// Gain is the resident memory that a lever would return.
type Gain struct {
	Least, Most memory.Bytes // the bounds; equal if the gain is exact
	// Limit is the container's limit with which the collector would run as rarely as without a limit; 0: unknown.
	Limit memory.Bytes
	Cost  Cost   // the cost of the current limit
	Why   string // the computation, with the numbers of this process
}

// Process describes a running process, for [Lever.Predict].
type Process struct {
	Usages  []amounts.Usage   // the results of readers
	Env     map[string]string // its variables for memory settings
	Limit   memory.Bytes      // the effective memory limit; 0: none
	Version Version           // the runtime's version, if known
}

// exactGain returns a gain with equal bounds.
func exactGain(b memory.Bytes, format string, args ...any) (Gain, bool) {
	return gainBetween(b, b, format, args...)
}

// gainBetween returns a gain with bounds.
func gainBetween(least, most memory.Bytes, format string, args ...any) (Gain, bool) {
	return Gain{Least: min(least, most), Most: most, Why: fmt.Sprintf(format, args...)}, true
}

// alreadySet returns no gain, for a setting that the process already has.
func alreadySet(text string) (Gain, bool) {
	return exactGain(0, "%s is already effective: it does not return the memory that is free now", text)
}

func noGain() (Gain, bool) { return Gain{}, false }

// trimGain returns the gain of malloc_trim, exact if the whole heap was read. docs/design/attribution.md compares it
// with real calls.
func trimGain(_ Process, a amounts.Usage) (Gain, bool) {
	why := fmt.Sprintf("resident pages inside free chunks, and the end of the main arena, counted chunk by chunk; "+
		"%s more are free on pages that also hold something in use", a.FreePartial)
	unread := a.Unread()
	if unread > 0 {
		why += fmt.Sprintf("; %s more of the heap could not be read, and may be free too", unread)
	}
	return gainBetween(a.Returnable, a.Returnable.Plus(unread), "%s", why)
}

// glibcLevers returns the levers of a process with glibc's malloc; trim is how its runtime calls malloc_trim.
func glibcLevers(trim string) []Lever {
	return append([]Lever{{Action: "malloc_trim", How: trim, Reader: amounts.Glibc, Gain: trimGain}}, arenaLevers()...)
}

func arenaLevers() []Lever {
	return []Lever{
		{Action: arenaMaxName + "=2", Knob: arenaMaxName, Reader: amounts.Glibc, Gain: arenaGain,
			How: "tuning.arenaMax: 2 in the profile, for new pods; threads that allocate all the time then wait for each other"},
		{Action: trimThresholdName + "=131072", Knob: trimThresholdName, Reader: amounts.Glibc, Gain: thresholdGain,
			How: "tuning.trimThreshold: 128Ki in the profile, for new pods; blocks above 128 KiB are then mapped one by one, " +
				"which costs page faults"},
	}
}

// arenaGain returns an upper bound: with two arenas, at most the unused memory outside of the two largest is returned.
func arenaGain(p Process, a amounts.Usage) (Gain, bool) {
	if n, err := strconv.Atoi(p.Env[arenaMaxName]); err == nil && n > 0 && n <= 2 {
		return alreadySet(arenaMaxName + "=" + strconv.Itoa(n))
	}
	if strings.Contains(p.Env["GLIBC_TUNABLES"], "glibc.malloc.arena_max") {
		return alreadySet("glibc.malloc.arena_max of GLIBC_TUNABLES")
	}
	arenas := a.Details[amounts.Arenas]
	if arenas <= 2 {
		return exactGain(0, "the process has %d without it", arenas)
	}
	retained, beyond := a.Bytes(amounts.Retained), a.Bytes(amounts.ArenasBeyondTwo)
	return gainBetween(0, min(retained, beyond), "%d arenas retain %s that is not in use, and %s lie outside of the two "+
		"largest", arenas, retained, beyond)
}

// thresholdGain returns the gain of the trim threshold. The least is the free memory at the tops of arenas beyond it.
// Free memory elsewhere is only returned where larger blocks were, which malloc then maps individually.
func thresholdGain(p Process, a amounts.Usage) (Gain, bool) {
	if text := p.Env[trimThresholdName]; text != "" {
		return alreadySet(trimThresholdName)
	}
	least := a.Bytes(amounts.TopsBeyondThreshold)
	return gainBetween(least, max(least, a.FreeResident), "%s at the tops of arenas, beyond the 128 KiB that it leaves "+
		"at each; other free pages are returned only where blocks above 128 KiB were", least)
}

// freshProcess returns an upper bound: a new process needs the memory that the old one uses, and not its free memory.
func freshProcess(p Process, a amounts.Usage) (Gain, bool) {
	free := a.FreeResident.Plus(a.FreePartial)
	malloc, _ := p.usage(amounts.Glibc)
	native := malloc.Bytes(amounts.Retained)
	return gainBetween(0, free.Plus(native), "%s are free between objects, and %s in malloc's arenas; the new process "+
		"needs the rest again", free, native)
}
