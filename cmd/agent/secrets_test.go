// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/agentnode"
)

// targets are programs that fill their heaps with a secret, which they have from a variable and from their command
// line, free half of it, and wait.
var targets = []struct{ name, program, file, script string }{
	{"python", "python3", "", `
import os, sys
kept = [(os.environ["SECRET"] + str(i)).encode() for i in range(200000)]
del kept[::2]
print("ready", flush=True)
sys.stdin.read()`},
	{"nodejs", "node", "", `
const kept = [];
for (let i = 0; i < 100000; i++) kept.push(Buffer.from(process.env.SECRET + i), process.env.SECRET + "-" + i);
for (let i = 0; i < kept.length; i += 2) kept[i] = null;
console.log("ready");
process.stdin.resume();
globalThis.kept = kept;`},
	{"ruby", "ruby", "", `
kept = Array.new(200000) { |i| ENV["SECRET"] + i.to_s }
(0...200000).step(2) { |i| kept[i] = nil }
STDOUT.puts "ready"
STDOUT.flush
STDIN.read
STDOUT.puts kept.size`},
	{"java", "java", "Secret.java", `
public class Secret {
	public static void main(String[] args) throws Exception {
		java.util.List<byte[]> kept = new java.util.ArrayList<>();
		for (int i = 0; i < 200000; i++) kept.add((System.getenv("SECRET") + i).getBytes());
		for (int i = 0; i < 200000; i += 2) kept.set(i, null);
		System.out.println("ready");
		System.in.read();
		System.out.println(kept.size());
	}
}`},
	{"go", "go", "main.go", `package main

import (
	"fmt"
	"os"
)

func main() {
	var kept [][]byte
	for i := range 200000 {
		kept = append(kept, []byte(os.Getenv("SECRET")+fmt.Sprint(i)))
	}
	for i := 0; i < len(kept); i += 2 {
		kept[i] = nil
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
	fmt.Println(len(kept))
}`},
	{"sh", "sh", "", `kept=$SECRET; for i in 1 2 3 4 5 6 7 8; do kept="$kept $kept"; done; echo ready; read line; echo "$kept"`},
}

// TestNothingOfATargetLeavesIt plants secrets in the memory, the environment and the command line of processes, and
// looks for them in all that the agent sends, logs and keeps.
func TestNothingOfATargetLeavesIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("reading the memory of processes takes root")
	}
	var random [16]byte
	_, _ = rand.Read(random[:])
	secret := hex.EncodeToString(random[:])
	var pods []agentnode.Pod
	for _, target := range targets {
		if pid, ok := start(t, secret, target.program, target.file, target.script); ok {
			if !bytes.Contains(core(t, pid), []byte(secret)) {
				t.Fatalf("%s does not hold the secret", target.name)
			}
			pods = append(pods, agentnode.Pod{
				Name: target.name, PIDs: []int{pid}, Usage: 120 * memory.MiB, Limit: 128 * memory.MiB,
			})
		}
	}
	agent := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", agent, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	node, err := agentnode.Start(t.Context(), agent, t.TempDir(), pods...)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Stop()
	inspected := func(pod string) bool {
		s, ok := node.Snapshot(pod)
		return ok && len(s.Containers) == 1 && s.Containers[0].Inspection == v1alpha1.InspectionDone
	}
	kills := 0
	all := agentnode.Wait(t.Context(), 3*time.Minute, func() bool {
		kills++ // what was found is written with the next kill
		missing := false
		for i, pod := range pods {
			if err := node.Set(i, 121*memory.MiB, kills/40); err != nil {
				t.Fatal(err)
			}
			missing = missing || !inspected(pod.Name)
		}
		return !missing
	})
	sent, writes := node.Requests()
	if !all {
		t.Fatalf("%d writes, not all were inspected: %s\n%s", writes, sent, node.Logs())
	}
	for _, pod := range pods {
		s, _ := node.Snapshot(pod.Name)
		if s.Containers[0].Memory == nil || s.Containers[0].Memory.Resident.IsZero() {
			t.Errorf("%s: nothing was read: %+v", pod.Name, s.Containers[0])
		}
	}
	kept := core(t, node.PID())
	if !bytes.Contains(kept, []byte(pods[0].Name)) {
		t.Fatal("the core of the agent does not even have the name of a pod")
	}
	for where, text := range map[string][]byte{"snapshots": sent, "logs": node.Logs(), "core": kept} {
		if n := bytes.Count(text, []byte(secret)); n > 0 {
			at := bytes.Index(text, []byte(secret))
			t.Errorf("the agent's %s has the secret %d times, once as %q", where, n, text[max(at-64, 0):at+40])
		}
	}
}

// start runs a script, in a file where it has to be in one, until it prints that it is ready; false: its interpreter is
// not installed.
func start(t *testing.T, secret, program, file, script string) (pid int, ok bool) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Logf("%s is not installed here", program)
		return 0, false
	}
	flag := map[string]string{"node": "-e", "ruby": "-e"}[program]
	if flag == "" {
		flag = "-c"
	}
	args := []string{flag, script}
	if file != "" {
		args = []string{filepath.Join(t.TempDir(), file)}
		if err := os.WriteFile(args[0], []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if program == "java" { // a JVM writes its own arguments and the program's into its file of counters
		args = append([]string{"-Dpassword=" + secret}, args...)
	}
	if program == "go" { // what runs is what it builds
		built := filepath.Join(t.TempDir(), "target")
		if out, err := exec.CommandContext(t.Context(), path, "build", "-o", built, args[0]).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		path, args = built, nil
	}
	command := exec.CommandContext(t.Context(), path, append(args, "--", "--password="+secret)...)
	command.Env = append(os.Environ(), "SECRET="+secret)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s: %q, %v", program, line, err)
	}
	return command.Process.Pid, true
}

// core returns all that a process has in memory and may write to, like a core dump. The process is stopped meanwhile.
func core(t *testing.T, pid int) []byte {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = maps.Close() }()
	mappings, err := procmem.ReadSmaps(maps)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Close() }()
	var all []byte
	for _, m := range mappings {
		if !m.Has(procmem.Readable|procmem.Writable) || strings.HasPrefix(m.Path, "/dev") {
			continue
		}
		const most = 64 << 20 // of a mapping: a heap is reserved in larger pieces
		b := make([]byte, min(m.Size(), most))
		n, _ := io.ReadFull(io.NewSectionReader(mem, int64(m.Start), int64(len(b))), b)
		all = append(all, b[:n]...)
	}
	return all
}
