// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/memory"
)

// recorded is /proc of a `sleep 5` on Linux 6.18. The names of links are not in it: a checkout may lose them.
type recorded struct{ fs.FS }

func (recorded) ReadLink(string) (string, error)       { return "/usr/bin/sleep", nil }
func (r recorded) Lstat(n string) (fs.FileInfo, error) { return fs.Stat(r.FS, n) }

func TestRecordedProcess(t *testing.T) {
	proc := recorded{os.DirFS("testdata/100")}
	p, err := Read(proc, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := Process{PID: 100, StartTime: p.StartTime, Exe: "/usr/bin/sleep"}
	if diff := gocmp.Diff(want, p); diff != "" || p.StartTime == 0 {
		t.Errorf("-want +got:\n%s", diff)
	}
	mappings, err := Mappings(proc)
	if err != nil {
		t.Fatal(err)
	}
	status, err := StatusOf(proc)
	if err != nil {
		t.Fatal(err)
	}
	var rss memory.Bytes
	names := map[string]bool{}
	for _, m := range mappings {
		rss += m.RSS
		names[m.Path] = true
	}
	// What the status counts misses what was faulted in since it was last brought up to date.
	if rss == 0 || rss < status.RSS/2 || !names["[heap]"] || !names["[vdso]"] || !names["/usr/bin/sleep"] {
		t.Errorf("%d mappings with %s, and the status says %s", len(mappings), rss, status.RSS)
	}
	env, err := Environ(proc, []string{"GOGC", "GODEBUG", "GOMEMLIMIT"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(map[string]string{"GOGC": "100", "GODEBUG": "x=1"}, env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSmaps(t *testing.T) {
	const text = `00400000-00452000 r-xp 00001000 fe:01 173521      /usr/bin/a b
Size:                328 kB
Rss:                  12 kB
Pss:                   6 kB
AnonHugePages:         0 kB
Private_Hugetlb:    2048 kB
Swap:                  8 kB
VmFlags: rd ex mr mw me
7f0000000000-7f0000001000 rw-s 00000000 00:00 0
Rss:                   4 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`
	got, err := ReadSmaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{
		{
			Start: 0x400000, End: 0x452000, Perms: Readable | Executable, Offset: 0x1000, Inode: 173521,
			Path: "/usr/bin/a b", RSS: 12 * memory.KiB, HugeTLB: 2 * memory.MiB,
		},
		{Start: 0x7f0000000000, End: 0x7f0000001000, Perms: Readable | Writable | Shared, RSS: 4 * memory.KiB},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Perms: Executable, Path: "[vsyscall]"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSmapsOfAHostileProcess: a process may map as much as the kernel lets it, under names as long as it likes.
func TestSmapsOfAHostileProcess(t *testing.T) {
	var many strings.Builder
	for i := range MaxMappings + 1 {
		fmt.Fprintf(&many, "%x-%x rw-p 00000000 00:00 0\n", i<<13, i<<13+4096)
	}
	if _, err := ReadSmaps(strings.NewReader(many.String())); !errors.Is(err, ErrTooMany) {
		t.Errorf("one mapping too many: %v", err)
	}
	long := "1000-2000 r--p 00000000 00:00 7 /" + strings.Repeat("x", 200_000) +
		"\nRss: 4 kB\n3000-4000 r--p 00000000 00:00 7 /y\n"
	got, err := ReadSmaps(strings.NewReader(long))
	if err != nil || len(got) != 2 || got[0].Path != "" || got[0].RSS != 4*memory.KiB || got[1].Path != "/y" {
		t.Errorf("a path of 200,000 bytes: %+v, error %v", got, err)
	}
	var paths strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&paths, "%x-%x r--p 00000000 00:00 7 /%01000d\n", i<<13, i<<13+4096, i)
	}
	got, err = ReadSmaps(strings.NewReader(paths.String()))
	kept := 0
	for _, m := range got {
		kept += len(m.Path)
	}
	if err != nil || len(got) != 10_000 || kept > maxPaths {
		t.Errorf("10 MB of paths: %d mappings, %d bytes of paths, error %v", len(got), kept, err)
	}
	for _, text := range []string{
		"Rss: 4 kB\n", "2000-1000 r--p 0 00:00 0\n", "2000-4000 r--p 0 00:00 0\n1000-3000 r--p 0 00:00 0\n", "\n",
		"1000-2000 r-\n",
		"1000-1ffffffffffffffff r--p 0 00:00 0\n", "1000-2000 r--p 0 00:00 0\nRss 4\n",
	} {
		if _, err := ReadSmaps(strings.NewReader(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestStartTime(t *testing.T) {
	const after = " S 1 1 1 0 -1 4194304 135 0 0 0 0 0 0 0 20 0 1 0 4711 2990080 417\n"
	for _, name := range []string{"sleep", "a b", ") S 1 1", "((", ")"} {
		if got, err := ReadStartTime(strings.NewReader("7 (" + name + ")" + after)); err != nil || got != 4711 {
			t.Errorf("%q: %d, error %v", name, got, err)
		}
	}
	for _, text := range []string{"", "7 (x) S 1", "7 (x)" + strings.Repeat(" x", 30)} {
		if _, err := ReadStartTime(strings.NewReader(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// TestTimes: the time of a process includes that of threads that have ended, and names hold what the process chose.
func TestTimes(t *testing.T) {
	stat := func(name, user, system string) *fstest.MapFile {
		return &fstest.MapFile{
			Data: []byte("7 (" + name + ") S 1 1 1 0 -1 4194304 135 0 0 0 " + user + " " + system + " 9 9 20\n"),
		}
	}
	proc := fstest.MapFS{
		"stat": stat("java", "900", "100"), "task/7/stat": stat("java", "1", "2"),
		"task/8/stat": stat("VM Thread", "300", "7"), "task/9/stat": stat(") S 1 1", "5", "0"),
		"task/10/gone": stat("ended meanwhile", "5", "0"), "task/11/stat": stat("x", "99999999999", "0"),
	}
	got, err := TimesOf(proc)
	want := Times{Process: 10 * time.Second, Threads: []ThreadTime{
		{Name: "java", Time: 30 * time.Millisecond}, {Name: "VM Thread", Time: 3070 * time.Millisecond},
		{Name: ") S 1 1", Time: 50 * time.Millisecond},
	}}
	slices.SortFunc(got.Threads, func(a, b ThreadTime) int { return cmp.Compare(b.Name, a.Name) })
	slices.SortFunc(want.Threads, func(a, b ThreadTime) int { return cmp.Compare(b.Name, a.Name) })
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for i := range MaxThreads {
		proc["task/"+strconv.Itoa(100+i)+"/stat"] = stat("x", "1", "0")
	}
	if got, err := TimesOf(proc); err == nil {
		t.Errorf("more threads than are read: %d of them", len(got.Threads))
	}
	if _, err := TimesOf(fstest.MapFS{"stat": stat("java", "900", "100")}); err == nil {
		t.Error("times of a process without threads")
	}
}

func TestStatus(t *testing.T) {
	got, err := ReadStatus(strings.NewReader(
		"Name:\tx\nNSpid:\t4711\t12\t1\nThreads:\t17\nVmRSS:\t  8 kB\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.NSPIDs, []int{4711, 12, 1}) || got.Threads != 17 || got.RSS != 8*memory.KiB || got.Name != "x" {
		t.Errorf("%+v", got)
	}
}

// TestEnvironKeepsNoSecret: only names that were asked for are kept, also of an environment that is a single value.
func TestEnvironKeepsNoSecret(t *testing.T) {
	text := "PASSWORD=hunter2\x00GOGC=50\x00=x\x00GOGC=60\x00GOMEMLIMIT=" + strings.Repeat("9", 5000) + "\x00" +
		strings.Repeat("y", 200_000)
	got, err := ReadEnviron(strings.NewReader(text), []string{"GOGC", "GOMEMLIMIT"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(map[string]string{"GOGC": "50"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMappingsThatChangeMeanwhile: the kernel writes a file of mappings in pieces, and goes on where the last mapping
// ended. One that has grown until then comes again.
func TestMappingsThatChangeMeanwhile(t *testing.T) {
	const before = "1000-2000 r--p 0 fe:00 7 /bin/x\nRss: 4 kB\n3000-5000 rw-p 0 00:00 0 [heap]\nRss: 8 kB\n"
	for name, c := range map[string]struct {
		then string
		want []uint64 // starts and ends
		rss  memory.Bytes
	}{
		"the heap grew": {
			"3000-9000 rw-p 0 00:00 0 [heap]\nRss: 20 kB\n", []uint64{0x1000, 0x2000, 0x3000, 0x9000}, 24,
		},
		"it was merged with both": {"1000-9000 rw-p 0 00:00 0 \nRss: 32 kB\n", []uint64{0x1000, 0x9000}, 32},
		"its end is another's":    {"4000-9000 rw-p 0 00:00 0 \nRss: 16 kB\n", []uint64{0x1000, 0x2000, 0x4000, 0x9000}, 20},
		"nothing changed": {
			"5000-9000 rw-p 0 00:00 0 \nRss: 16 kB\n", []uint64{0x1000, 0x2000, 0x3000, 0x5000, 0x5000, 0x9000}, 28,
		},
	} {
		got, err := ReadSmaps(strings.NewReader(before + c.then))
		var at []uint64
		var rss memory.Bytes
		for _, m := range got {
			at, rss = append(at, m.Start, m.End), rss.Plus(m.RSS)
		}
		if err != nil || !slices.Equal(at, c.want) || rss != c.rss*memory.KiB {
			t.Errorf("%s: %x, %s, %v; want %x, %d KiB", name, at, rss, err, c.want, c.rss)
		}
	}
	_, err := ReadSmaps(strings.NewReader(before + "3000-4000 rw-p 0 00:00 0 \n"))
	if !errors.Is(err, ErrSyntax) {
		t.Errorf("a mapping that ends before the last one: %v", err)
	}
}

// TestKilled: a process to which SIGKILL was sent is reported as long as it is there.
func TestKilled(t *testing.T) {
	command := exec.Command("sleep", "100")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	dir := os.DirFS("/proc/" + strconv.Itoa(command.Process.Pid))
	if status, err := StatusOf(dir); err != nil || status.Killed {
		t.Errorf("%+v, %v: it lives", status, err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if status, err := StatusOf(dir); err != nil || !status.Killed {
		t.Errorf("%+v, %v: it was killed", status, err)
	}
	_ = command.Wait()
}
