// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package agentbench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/agentnode"
)

// fillers are the programs of the other containers, in turns. They fill some memory and wait.
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

// bench is a node with an agent and its containers.
type bench struct {
	latency string // the program that allocates
	cgroups *agentnode.Cgroups
	node    *agentnode.Node
	names   map[string]int
	pods    []agentnode.Pod

	target  *exec.Cmd // allocates
	input   io.Writer
	answers *bufio.Reader
}

// newBench starts the containers and the agent.
func newBench(t *testing.T) *bench {
	t.Helper()
	work := t.TempDir()
	b := &bench{names: map[string]int{}, latency: filepath.Join(work, "latency")}
	out, err := exec.CommandContext(t.Context(), "gcc", "-O2", "-o", b.latency, "programs/latency.c").CombinedOutput()
	if err != nil {
		t.Fatalf("compiling the program that allocates (gcc): %v: %s", err, out)
	}
	root := filepath.Join(work, "cgroup")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if b.cgroups, err = agentnode.NewCgroups(root); err != nil {
		t.Fatalf("making cgroups: %v", err)
	}
	t.Cleanup(func() {
		for range 50 { // the kernel removes ended processes with a delay
			if err = b.cgroups.Remove(); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error(err)
	})
	for i := range *pods {
		filler := fillers[i%len(fillers)]
		b.start(t, filler.name, filler.command)
	}
	b.target, b.input, b.answers = b.start(t, "target", `exec "$LATENCY" 100`)
	// A real-time priority, so that other programs on the machine do not change the result. Without it, they may.
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(b.target.Process.Pid, &attr, 0); err != nil {
		t.Log("realtime=no", err)
	}
	if b.node, err = agentnode.StartReal(t.Context(), *agent, b.cgroups, b.pods...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.node.Stop)
	return b
}

// start runs a program in its own cgroup and waits until it is ready. The limit is at least four times its usage.
func (b *bench) start(t *testing.T, name, command string) (c *exec.Cmd, in io.Writer, answers *bufio.Reader) {
	t.Helper()
	i := len(b.pods)
	dir, err := b.cgroups.Make(i)
	if err != nil {
		t.Fatalf("making a cgroup: %v", err)
	}
	c = exec.CommandContext(t.Context(), "sh", "-c", "echo $$ > "+dir+"/cgroup.procs && "+command)
	c.Env, c.Stderr = append(os.Environ(), "LATENCY="+b.latency), os.Stderr
	in, err = c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() }) // killed before, when the test's context ends
	answers = bufio.NewReader(out)
	if line, err := answers.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s does not start: %q, %v", name, line, err)
	}
	b.names[name]++
	b.pods = append(b.pods, agentnode.Pod{Name: fmt.Sprintf("%s-%d", name, i), PIDs: []int{c.Process.Pid}})
	usage, err := b.cgroups.Usage(i)
	if err == nil {
		err = b.cgroups.SetLimit(i, max(4*usage, 64*memory.MiB))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, in, answers
}

// kinds returns the numbers of containers, such as "malloc:42,nodejs:21".
func (b *bench) kinds() string {
	var all []string
	for name, n := range b.names {
		all = append(all, fmt.Sprintf("%s:%d", name, n))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
