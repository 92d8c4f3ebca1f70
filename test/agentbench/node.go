// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/agentnode"
)

//go:embed programs/latency.c
var latencyProgram []byte

// fillers are what the other containers run, in turns, as far as it is installed: they fill some memory and wait.
var fillers = []struct{ name, command string }{
	{"python", `exec python3 -c 'import sys
kept = [str(i) * 4 for i in range(100000)]
print("ready", flush=True)
sys.stdin.read()'`},
	{"malloc", `exec "$LATENCY" 16`},
	{"nodejs", `exec node -e 'const kept = []; for (let i = 0; i < 1e5; i++) kept.push({ i });
console.log("ready"); process.stdin.on("data", () => kept.pop()); process.stdin.resume()'`},
	{"malloc", `exec "$LATENCY" 4`},
	{"shell", `echo ready; while read line; do :; done`},
}

// bench is a node with an agent.
type bench struct {
	work    string
	cgroups *agentnode.Cgroups
	node    *agentnode.Node
	started []*exec.Cmd
	inputs  []io.Closer
	names   map[string]int
	pods    []agentnode.Pod

	target    *exec.Cmd // allocates
	ask       io.Writer
	answers   *bufio.Reader
	targetPod int
}

// prepare starts everything but measures nothing. What it returns is to be closed, also after an error.
func prepare(ctx context.Context, o options) (*bench, error) {
	b := &bench{names: map[string]int{}}
	var err error
	if b.work, err = os.MkdirTemp("", "agentbench-"); err != nil {
		return b, err
	}
	program := filepath.Join(b.work, "latency")
	if err := os.WriteFile(program+".c", latencyProgram, 0o600); err != nil {
		return b, err
	}
	if out, err := exec.CommandContext(ctx, "gcc", "-O2", "-o", program, program+".c").CombinedOutput(); err != nil {
		return b, fmt.Errorf("compiling the program that allocates (gcc): %w: %s", err, out)
	}
	root := filepath.Join(b.work, "cgroup")
	if err := os.Mkdir(root, 0o700); err != nil {
		return b, err
	}
	if b.cgroups, err = agentnode.NewCgroups(root); err != nil {
		return b, fmt.Errorf("making cgroups: %w", err)
	}
	for i := range o.pods {
		filler := fillers[i%len(fillers)]
		if _, _, err := b.start(ctx, i, filler.name, filler.command, program); err != nil {
			return b, err
		}
	}
	b.targetPod = o.pods
	in, out, err := b.start(ctx, b.targetPod, "target", `exec "$LATENCY" 100`, program)
	if err != nil {
		return b, err
	}
	b.ask, b.answers, b.target = in, out, b.started[len(b.started)-1]
	// A real-time priority, so that other programs on the machine are not taken for the agent. Where the kernel does not
	// allow it, they are.
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(b.target.Process.Pid, &attr, 0); err != nil {
		fmt.Println("realtime=no", err)
	}
	b.node, err = agentnode.StartReal(ctx, o.agent, b.cgroups, b.pods...)
	return b, err
}

// start runs a program in a cgroup of its own and waits until it is ready.
func (b *bench) start(ctx context.Context, i int, name, command, latency string) (io.Writer, *bufio.Reader, error) {
	dir, err := b.cgroups.Make(i)
	if err != nil {
		return nil, nil, fmt.Errorf("making a cgroup: %w", err)
	}
	c := exec.CommandContext(ctx, "sh", "-c", "echo $$ > "+dir+"/cgroup.procs && "+command)
	c.Env = append(os.Environ(), "LATENCY="+latency)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	b.started, b.inputs = append(b.started, c), append(b.inputs, in)
	answers := bufio.NewReader(out)
	if line, err := answers.ReadString('\n'); line != "ready\n" {
		return nil, nil, fmt.Errorf("%s does not start: %q, %w", name, line, err)
	}
	b.names[name]++
	b.pods = append(b.pods, agentnode.Pod{Name: fmt.Sprintf("%s-%d", name, i), PIDs: []int{c.Process.Pid}})
	usage, err := b.cgroups.Usage(i)
	if err != nil {
		return nil, nil, err
	}
	return in, answers, b.cgroups.SetLimit(i, max(4*usage, 64*memory.MiB)) // a quarter is used
}

func (b *bench) close() (err error) {
	if b.node != nil {
		b.node.Stop()
	}
	for _, in := range b.inputs {
		_ = in.Close()
	}
	for _, c := range b.started {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	if b.cgroups != nil {
		for range 50 { // the kernel takes a moment to let go of processes
			if err = b.cgroups.Remove(); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return errors.Join(err, os.RemoveAll(b.work))
}

// kinds is "21 malloc, 21 nodejs".
func (b *bench) kinds() string {
	var all []string
	for name, n := range b.names {
		all = append(all, fmt.Sprintf("%s:%d", name, n))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// load is the machine's, because a busy one makes everything slower.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// threadTimes is what each thread of a process has run, by its number, where the kernel reports it.
func threadTimes(pid int) map[int]time.Duration {
	out := map[int]time.Duration{}
	threads, _ := procfs.AllThreads(pid) // none: it has ended, which others notice
	for _, t := range threads {
		if ran, err := t.Schedstat(); err == nil {
			out[t.PID] = time.Duration(ran.RunningNanoseconds)
		}
	}
	return out
}

// taken is the processor time that a process has used, and its resident memory in bytes.
func taken(pid int) (cpu time.Duration, rss int, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	stat, err := p.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), stat.ResidentMemory(), err
}
