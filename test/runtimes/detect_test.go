//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/procmem/live"
)

// idle are arguments with which a program runs until its input ends, by the first part of an edition's name.
var idle = map[string][]string{
	"node":   {"-e", "process.stdin.resume(); console.log('ready')"},
	"deno":   {"eval", "console.log('ready'); await Deno.stdin.read(new Uint8Array(1))"},
	"bun":    {"-e", "console.log('ready'); for await (const line of console) {}"},
	"jdk":    {"-Xmx64m", "-cp", "CLASSES", "Idle"},
	"python": {"-c", "import sys; print('ready', flush=True); sys.stdin.read()"},
	"ruby":   {"-e", "puts 'ready'; $stdout.flush; $stdin.read"},
	"php":    {"-r", "echo 'ready'; fgets(STDIN);"},
	"go":     {"idle"},
	"native": {"idle"},
}

// idleArgs are the arguments for a kind of program; a JVM needs a class, which most JDKs here cannot compile.
func idleArgs(t *testing.T, kind string) []string {
	t.Helper()
	if kind != "jdk" {
		return idle[kind]
	}
	needs(t, "javac", "openjdk-17-jdk-headless")
	classes := once(t, "idle-java-11", func(dir string) error {
		return finish(exec.CommandContext(t.Context(), "javac", "--release", "11", "-d", dir, "testdata/Idle.java"))
	})
	args := slices.Clone(idle[kind])
	args[slices.Index(args, "CLASSES")] = classes
	return args
}

// titles are the names of runtimes that detection reports, by the first part of an edition's name.
var titles = map[string]string{
	"node": "Node.js", "deno": "Deno", "bun": "Bun", "jdk": "Java", "python": "Python", "ruby": "Ruby", "php": "PHP",
	"go": "Go", "native": "native code",
}

// TestDetection: the runtime and its exact version are detected from outside, for each edition. The expected version is
// in the edition's name; for programs of Debian, --version reports it.
func TestDetection(t *testing.T) {
	for _, e := range editions(t) {
		t.Run(e.name, func(t *testing.T) {
			if isSkipped(e.name) {
				t.Skip("SKIP names it")
			}
			kind, version, _ := strings.Cut(e.name, "-")
			path := e.fetch(t)
			if strings.HasSuffix(version, "debian") || kind == "native" {
				version = ownVersion(t, kind, path)
			}
			pid := start(t, path, idleArgs(t, kind))
			got := detectProcess(t, pid)
			t.Logf("%s %s: %q", got.Title, got.Version, got.Evidence)
			if got.Title != titles[kind] || !sameVersion(got.Version, version) {
				t.Errorf("%s %s, want %s %s; %q", got.Title, got.Version, titles[kind], version, got.Evidence)
			}
			if kind != "go" && got.Libc != "glibc" {
				t.Errorf("C library %q, want glibc", got.Libc)
			}
		})
	}
}

// sameVersion: the JDK adds its build, "17.0.15+6".
func sameVersion(got, want string) bool {
	got, _, _ = strings.Cut(got, "+")
	return got == want
}

func ownVersion(t *testing.T, kind, path string) string {
	t.Helper()
	if kind == "native" {
		return ""
	}
	flag := "--version"
	if kind == "jdk" {
		flag = "-version"
	}
	out, err := exec.CommandContext(t.Context(), path, flag).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	between := func(r rune) bool { return strings.ContainsRune(" \"\n()-", r) }
	for _, word := range strings.FieldsFunc(string(out), between) {
		if word = leadingVersion(word); strings.Count(word, ".") == 2 {
			return word
		}
	}
	t.Fatalf("no version in %q", out)
	return ""
}

// leadingVersion returns the digits and dots at the start of a word: "3.1.7p241" is 3.1.7.
func leadingVersion(word string) string {
	return word[:len(word)-len(strings.TrimLeft(word, "0123456789."))]
}

// start runs a program until the test ends, and waits for its first output.
func start(t *testing.T, path string, args []string) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "NO_COLOR=1"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 64)); err != nil {
		t.Fatalf("no output from %s: %v", path, err)
	}
	return cmd.Process.Pid
}

func detectProcess(t *testing.T, pid int) detect.Result {
	t.Helper()
	dir, err := live.Proc("/proc").Process(pid)
	if err != nil {
		t.Fatal(err)
	}
	target, err := dir.Target(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	mappings, err := target.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	env, err := target.Environ(detect.Variables())
	if err != nil {
		t.Fatal(err)
	}
	argv, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	facts, err := new(detect.Cache).Gather("", detect.Process{
		Program: target.Process().Exe, Mappings: mappings, Env: env,
		Argv: strings.Split(string(bytes.TrimRight(argv, "\x00")), "\x00"),
	}, target.OpenFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("inspected %d files in %s", len(facts.Files), time.Since(begin).Round(10*time.Microsecond))
	return detect.Detect(facts)
}
