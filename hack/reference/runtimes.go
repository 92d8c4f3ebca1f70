// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

const guidePage = "../guide/runtimes.md"

const runtimesIntro = `# Runtimes

What memfit knows of each language runtime.
[The guide](` + guidePage + `) explains why and when.

`

const settingsIntro = `## Settings

The settings that memfit injects into new pods.
"Set by default" holds for a container with a limit of 1Gi and a profile without ` + "`tuning`" + `.
A ` + "`*`" + ` in a command matches digits and dots: ` + "`python*`" + ` matches ` + "`python3.12`" + `.

`

const fullHeapIntro = `## Full heap

How a runtime ends whose heap reached its own cap.
memfit distinguishes this from an OOM kill and recommends to raise the cap.

`

const launchersIntro = `## Start scripts

Variables from which start scripts in images take a heap cap.
In a pod that sets one of them, memfit reports the heap cap and sets none.

`

// Runtimes returns the page about internal/runtimes. guide is the text of the guide, whose sections it links to.
func Runtimes(guide string) string {
	return runtimesIntro + settingsIntro + settings(guide) + "\n" + fullHeapIntro + fullHeap(guide) + "\n" +
		launchersIntro + launchers()
}

// settings returns a table of the settings of each runtime and the commands that identify it.
func settings(guide string) string {
	var rows [][]string
	all := runtimes.All()
	for _, r := range slices.Concat(all[1:], all[:1]) { // Auto comes last
		byDefault, onRequest := split(r)
		rows = append(rows, []string{title(guide, r), code(r.Name), codes(r.Commands), codes(byDefault), codes(onRequest)})
	}
	return table([]string{
		"runtime", "`runtime.type`", "detected by command", "set by default", "set when the profile requests it",
	}, rows)
}

// split divides the settings of a runtime into those that an empty profile sets at a limit of 1Gi, and the others.
func split(r *runtimes.Runtime) (byDefault, onRequest []string) {
	f := runtimes.Facts{Limit: memory.GiB, Cgroup: memory.GiB, LimitText: memory.GiB.String()}
	for _, k := range r.Knobs {
		if k.Derive(f).Value != "" {
			byDefault = append(byDefault, k.Name)
		} else {
			onRequest = append(onRequest, k.Name)
		}
	}
	return byDefault, onRequest
}

// fullHeap returns a table of how a runtime ends whose heap has reached its cap.
func fullHeap(guide string) string {
	var rows [][]string
	for _, r := range runtimes.All() {
		full := r.FullHeap
		if len(full.Exits)+len(full.Faults)+len(full.Words) == 0 {
			continue
		}
		exits := numbers(full.Exits)
		for _, n := range numbers(full.Faults) {
			exits = append(exits, n+" with memory at the cap")
		}
		rows = append(rows, []string{title(guide, r), strings.Join(exits, ", "), codes(full.Words), full.Raise})
	}
	return table([]string{"runtime", "exit codes", "last log lines", "what raises the cap"}, rows)
}

// launchers returns a table of the variables from which start scripts take a heap cap.
func launchers() string {
	var rows [][]string
	for _, r := range runtimes.All() {
		for _, l := range r.Launchers {
			rows = append(rows, []string{code(l.Name), l.Of, string(l.Holds), l.Source})
		}
	}
	return table([]string{"variable", "read by", "holds", "source"}, rows)
}

// title returns the usual name of the runtime, as a link if the guide has a section about it.
func title(guide string, r *runtimes.Runtime) string {
	for line := range strings.Lines(guide) {
		section, is := strings.CutPrefix(strings.TrimSpace(line), "## ")
		if is && (section == r.Name || strings.HasPrefix(strings.ToLower(section)+" ", strings.ToLower(r.Title)+" ")) {
			anchor := strings.NewReplacer(" ", "-", ".", "").Replace(strings.ToLower(section))
			return fmt.Sprintf("[%s](%s#%s)", r.Title, guidePage, anchor)
		}
	}
	return r.Title
}

func numbers(of []int32) []string {
	texts := make([]string, len(of))
	for i := range of {
		texts[i] = strconv.Itoa(int(of[i]))
	}
	return texts
}
