// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/attribution/glibc"
	"github.com/memfit/memfit/internal/memory"
)

//go:embed programs/malloc.c
var mallocProgram []byte

// The C programs of the research's table: mixed sizes, small ones, tiny ones with many in fast bins, a fragmented heap,
// large blocks, a single thread. The fragmented one keeps a fifth of its blocks, so that few whole pages are free.
func init() {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"c-mixed", []string{"4", "16", "100000", "50", "300"}},
		{"c-small", []string{"8", "16", "1024", "20", "100"}},
		{"c-tiny", []string{"16", "64", "128", "5", "20"}},
		{"c-fragmented", []string{"4", "16", "4000", "200", "200"}},
		{"c-large", []string{"2", "100000", "4000000", "50", "300"}},
		{"c-one-thread", []string{"0", "16", "100000", "50", "1000"}},
	} {
		cases = append(cases, Case{Name: c.name, Command: compiled(nil, c.args), Check: checkTrim})
		cases = append(cases, Case{
			Name:    c.name + "-thp",
			Command: compiled([]string{"GLIBC_TUNABLES=glibc.malloc.hugetlb=1"}, c.args),
			Check:   checkTrim,
		})
	}
	for name, args := range map[string][]string{
		"c-mixed-two-arenas": {"4", "16", "100000", "50", "300"}, "c-small-two-arenas": {"8", "16", "1024", "20", "100"},
		"c-fragmented-two-arenas": {"6", "16", "4000", "200", "200"},
	} {
		cases = append(cases, Case{Name: name, Command: compiled(nil, args), Check: checkArenas})
	}
	cases = append(cases, Case{
		Name:    "c-churn",
		Command: compiled(nil, []string{"8", "16", "10000", "50", "100", "churn"}),
		Check:   checkChurn,
	})
}

// compiled builds the C program once, with the system's compiler.
func compiled(env, args []string) func(string) (*exec.Cmd, error) {
	return func(work string) (*exec.Cmd, error) {
		if _, err := exec.LookPath("gcc"); err != nil {
			return nil, fmt.Errorf("%w: there is no gcc", ErrSkip)
		}
		program := filepath.Join(work, "malloc")
		if _, err := os.Stat(program); err != nil {
			if err := os.WriteFile(program+".c", mallocProgram, 0o600); err != nil {
				return nil, err
			}
			out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", program, program+".c", "-lpthread").CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("gcc: %w\n%s", err, out)
			}
		}
		command := exec.Command(program, args...)
		command.Env = append(os.Environ(), env...)
		return command, nil
	}
}

// checkTrim compares with the memory that malloc_trim releases and with malloc's memory in use; after the trim no
// memory may be returnable.
func checkTrim(ctx context.Context, p *Process) ([]Comparison, error) {
	before, err := glibcUsage(ctx, p)
	if err != nil {
		return nil, err
	}
	info, err := p.Numbers("info")
	if err != nil {
		return nil, err
	}
	collapsed := hugePagesCollapsed()
	trim, err := p.Numbers("trim")
	if err != nil {
		return nil, err
	}
	after, err := glibcUsage(ctx, p)
	if err != nil {
		return nil, err
	}
	collapsed = hugePagesCollapsed() - collapsed
	released := memory.Bytes(trim[0]-trim[1]) * memory.KiB
	used := memory.Bytes(info[0])
	compared := []Comparison{
		{Measure: Trim, What: "malloc_trim gives back", Estimate: before.Returnable, Truth: released},
		{Measure: Trim, What: "what is left after it", Estimate: after.Returnable, Truth: 0, Of: released},
	}
	for i := range compared {
		if collapsed > 0 { // khugepaged has filled huge pages again, also where malloc_trim had just released pages
			compared[i].What += fmt.Sprintf(" (%d huge pages came back)", collapsed)
			compared[i].MayDiffer = bounds[Trim] + float64(collapsed)*float64(hugePage)/float64(max(released, 1))
		}
	}
	if used > 0 { // glibc before 2.33 has no mallinfo2
		compared = append(compared, Comparison{
			Measure: Heap, What: "allocated, says mallinfo2", Truth: used, Estimate: before.allocated,
			Of: max(used, memory.MiB), // headers at the end of heaps are a large part of a few KiB
		})
	}
	return compared, nil
}

const hugePage = 2 * memory.MiB

// hugePagesCollapsed returns how many huge pages the kernel has collapsed since it started, of all processes.
func hugePagesCollapsed() int64 {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// usage is the result of the reader of glibc.
type usage struct {
	Returnable, allocated memory.Bytes
	took                  time.Duration
}

func glibcUsage(ctx context.Context, p *Process) (usage, error) {
	result, err := p.Attribute(ctx)
	if err != nil {
		return usage{}, err
	}
	u := result.Usage(glibc.Reader{}.Name())
	if u == nil {
		return usage{}, fmt.Errorf("no heap of glibc: %v", result.Failed)
	}
	if u.Coverage < 0.95 {
		return usage{}, fmt.Errorf("coverage is %.4f", u.Coverage)
	}
	// mallinfo2 counts chunks in caches of threads as in use.
	allocated := memory.Bytes(u.Details[glibc.Cached] + u.Details[glibc.Allocated])
	return usage{Returnable: u.Returnable, allocated: allocated, took: result.Took.Round(time.Millisecond)}, nil
}

// churnRounds is how often the running program is read.
const churnRounds = 10

// checkChurn compares readings while eight threads allocate and free without a pause with readings right before and
// after, when the process is stopped. A reading of a running program is correct if its value was true at some moment of
// the reading, so it is accepted between the two stopped ones, and otherwise compared with the nearer one; their
// distance is printed. In the end the threads stop, and malloc_trim checks the readings of the stopped program.
func checkChurn(ctx context.Context, p *Process) ([]Comparison, error) {
	var all []Comparison
	before, err := stoppedUsage(ctx, p)
	if err != nil {
		return nil, err
	}
	for i := range churnRounds {
		running, err := glibcUsage(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("while it runs: %w", err)
		}
		after, err := stoppedUsage(ctx, p)
		if err != nil {
			return nil, err
		}
		least, most := min(before.Returnable, after.Returnable), max(before.Returnable, after.Returnable)
		all = append(all, Comparison{
			Measure:  Trim,
			What:     fmt.Sprintf("running, %d (%s; moved %.1f%%)", i+1, running.took, 100*share(most-least, most)),
			Estimate: running.Returnable, Truth: min(max(running.Returnable, least), most),
		})
		before = after
	}
	if _, err := p.Ask("hold"); err != nil {
		return nil, err
	}
	trim, err := checkTrim(ctx, p)
	return append(all, trim...), err
}

// share returns part divided by of.
func share(part, of memory.Bytes) float64 { return float64(part) / float64(max(of, 1)) }

// stoppedUsage stops the process, reads its usage, and continues it.
func stoppedUsage(ctx context.Context, p *Process) (usage, error) {
	if err := p.Stop(); err != nil {
		return usage{}, err
	}
	stopped, err := glibcUsage(ctx, p)
	if err != nil {
		return usage{}, fmt.Errorf("stopped: %w", err)
	}
	return stopped, p.Continue()
}
