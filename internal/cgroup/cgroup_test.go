// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const (
	uid  = "254a8dbd-72d3-46e9-bb4e-d852b1221545"
	hash = "6f1ed002ab5595859014ebf0951522d9" // of a static pod
)

var (
	id    = strings.Repeat("0123456789abcdef", 4)
	other = strings.Repeat("fedcba9876543210", 4)
)

func TestParsePath(t *testing.T) {
	underscores := strings.ReplaceAll(uid, "-", "_")
	for name, tc := range map[string]struct {
		path string
		want Ref
	}{
		"cgroupfs":       {"/memfit-lab/kubepods/burstable/pod" + uid + "/" + id, Ref{uid, id}},
		"guaranteed":     {"/kubepods/pod" + uid + "/" + id, Ref{uid, id}},
		"static pod":     {"/kubepods/burstable/pod" + hash + "/" + id, Ref{hash, id}},
		"from elsewhere": {"/../../../burstable/pod" + uid + "/" + id, Ref{uid, id}},
		"systemd": {
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + underscores + ".slice/cri-containerd-" + id +
				".scope", Ref{uid, id},
		},
		"kind": {
			"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + underscores + ".slice/cri-containerd-" + id +
				".scope", Ref{uid, id},
		},
		"CRI-O": {
			"/kubepods.slice/kubepods-pod" + underscores + ".slice/crio-" + id + ".scope", Ref{uid, id},
		},
		"systemd in it": {
			"/kubepods/pod" + uid + "/" + id + "/system.slice/docker-" + other + ".scope", Ref{uid, id},
		},
		"CRI-O's monitor": {
			"/kubepods.slice/kubepods-pod" + underscores + ".slice/crio-conmon-" + id + ".scope", Ref{},
		},
		"the pod itself":        {"/kubepods/burstable/pod" + uid, Ref{}},
		"a container of no pod": {"/docker/" + id, Ref{}},
		"a service":             {"/system.slice/kubelet.service", Ref{}},
		"an ID of capitals":     {"/kubepods/pod" + uid + "/" + strings.ToUpper(id), Ref{}},
		"an ID that is short":   {"/kubepods/pod" + uid + "/" + id[1:], Ref{}},
		"nothing":               {"", Ref{}},
	} {
		got, ok := ParsePath(tc.path)
		if got != tc.want || ok != (tc.want != Ref{}) {
			t.Errorf("%s: %+v (%t), want %+v", name, got, ok, tc.want)
		}
	}
}

func TestMemoryPath(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    string
		version Version
	}{
		"v2":                       {"0::/kubepods/x\n", "/kubepods/x", V2},
		"hybrid":                   {"9:name=systemd:/s\n4:memory:/m\n0::/\n", "/m", V1},
		"hybrid, in another order": {"0::/u\n4:memory:/m\n", "/m", V1},
		"with another controller":  {"4:cpu,memory:/m\n", "/m", V1},
		"a path with colons":       {"0::/a:b:c\n", "/a:b:c", V2},
		"without memory":           {"3:cpuset:/c\n", "", 0},
		"nothing":                  {"", "", 0},
	} {
		got, version, ok := MemoryPath([]byte(tc.text))
		if got != tc.want || version != tc.version || ok != (tc.version != 0) {
			t.Errorf("%s: %q %v %t, want %q %v", name, got, version, ok, tc.want, tc.version)
		}
	}
}

func TestHolds(t *testing.T) {
	pod := "/kubepods/burstable/pod" + uid + "/"
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"its own cgroup":              {"0::" + pod + id + "\n", true},
		"a cgroup below":              {"0::" + pod + id + "/system.slice/docker-" + other + ".scope\n", true},
		"another container":           {"0::" + pod + other + "\n", false},
		"below another container":     {"0::" + pod + other + "/" + id + "\n", false},
		"from the same pod":           {"0::/../" + id + "\n", true},
		"another, from the same pod":  {"0::/../cri-containerd-" + other + ".scope\n", false},
		"a node in a container":       {"0::/docker/" + other + pod + id + "\n", true},
		"the memory controller of v1": {"4:memory:" + pod + id + "\n0::" + pod + other + "\n", true},
		"a removed cgroup":            {"0::" + pod + id + " (deleted)\n", false},
		"the reader's own cgroup":     {"0::/\n", false},
		"nothing":                     {"", false},
	} {
		if got := InContainer(id, []byte(tc.text)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func files(in map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range in {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// v1 is a node with both hierarchies, and what a container's files held in the lab.
func v1() fstest.MapFS {
	dir := "memory/memfit-lab/kubepods/burstable/pod" + uid + "/" + id
	return files(map[string]string{
		"cgroup.procs":                 "",
		"unified/cgroup.controllers":   "",
		"memory/memory.stat":           "",
		dir + "/memory.usage_in_bytes": "104857600\n",
		dir + "/memory.limit_in_bytes": "134217728\n",
		dir + "/memory.oom_control":    "oom_kill_disable 0\nunder_oom 1\noom_kill 2\n",
		dir + "/memory.stat": "cache 1\nrss 2\ntotal_rss 73400320\ntotal_shmem 1048576\ntotal_pgmajfault 5\n" +
			"total_inactive_file 10485760\ntotal_active_file 20971520\ntotal_swap 4096\n",
		dir + "/cgroup.procs": "17\n0\n42\n",
		"memory/memfit-lab/kubepods/burstable/pod" + uid + "/memory.limit_in_bytes": "9223372036854771712\n",
		"memory/system.slice/kubelet.service/cgroup.procs":                          "1\n",
	})
}

func TestReadV1(t *testing.T) {
	tree, err := Open(v1())
	if err != nil {
		t.Fatal(err)
	}
	containers, _, err := tree.Containers()
	if err != nil || len(containers) != 1 || containers[0].Ref != (Ref{uid, id}) || tree.Version() != V1 {
		t.Fatalf("%v: %+v (%v)", tree.Version(), containers, err)
	}
	got, err := read(tree, containers[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Reading{
		Usage: 100 * memory.MiB, Limit: 128 * memory.MiB, High: Unlimited, Anon: 70 * memory.MiB, File: 30 * memory.MiB,
		Swap: 4 * memory.KiB, Faults: 5, Events: Events{Kills: 2}, UnderOOM: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Demand() != 70*memory.MiB+4*memory.KiB {
		t.Errorf("demand is %v", got.Demand())
	}
	if limit, err := tree.Limit(containers[0].PodDir); err != nil || limit != Unlimited {
		t.Errorf("the pod's limit is %v (%v), want none", limit, err)
	}
	if pids, all, err := tree.Processes(containers[0].Dir); err != nil || !all || !slices.Equal(pids, []int{17, 42}) {
		t.Errorf("processes %v, all %t (%v)", pids, all, err)
	}
	if _, err := read(tree, "memory/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cgroup that has gone is answered with %v", err)
	}
}

// TestNestedProcesses: what a container put into cgroups of its own is in it as well, once, and what is beyond the
// bounds is not passed over in silence.
func TestNestedProcesses(t *testing.T) {
	dir := "memory/kubepods/pod" + uid + "/" + id
	of := func(nested map[string]string) *Tree {
		all := map[string]string{"memory/memory.stat": "", dir + "/cgroup.procs": "17\n42\n"}
		for name, text := range nested {
			all[dir+"/"+name] = text
		}
		tree, err := Open(files(all))
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	nested := func(textsAndCgroups ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(textsAndCgroups); i += 2 {
			all[textsAndCgroups[i+1]+"/cgroup.procs"] = textsAndCgroups[i]
		}
		return all
	}
	many := map[string]string{}
	for i := range maxNested + 1 {
		many[fmt.Sprintf("c%d/cgroup.procs", i)] = ""
	}
	crowd := strings.Builder{}
	for i := range maxProcesses {
		fmt.Fprintln(&crowd, 100+i)
	}
	for name, c := range map[string]struct {
		nested map[string]string
		want   []int // nil: only all counts
		all    bool
	}{
		"none":                    {nil, []int{17, 42}, true},
		"two, one in the other":   {nested("99\n42\n", "a", "3\n", "a/b"), []int{3, 17, 42, 99}, true},
		"one that cannot be read": {map[string]string{"a/x": "", "b/cgroup.procs": "99\n"}, []int{17, 42, 99}, true},
		"too many cgroups":        {many, []int{17, 42}, false},
		"too deep":                {nested("99\n", strings.Repeat("x/", nestedDepth)+"x"), []int{17, 42}, false},
		"deep":                    {nested("99\n", strings.Repeat("x/", nestedDepth-1)+"x"), []int{17, 42, 99}, true},
		"too many processes":      {nested(crowd.String(), "a"), nil, false},
	} {
		pids, all, err := of(c.nested).Processes(dir)
		if err != nil || all != c.all || c.want != nil && !slices.Equal(pids, c.want) || len(pids) > maxProcesses {
			t.Errorf("%s: %d processes %v, all %t (%v)", name, len(pids), pids[:min(len(pids), 9)], all, err)
		}
	}
	if _, _, err := of(nil).Processes("memory/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the processes of a cgroup that has gone: %v", err)
	}
}

// v2 is a node with the systemd driver.
func v2() fstest.MapFS {
	dir := "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") +
		".slice/cri-containerd-" + id + ".scope"
	return files(map[string]string{
		"cgroup.controllers":    "cpuset cpu io memory pids\n",
		dir + "/memory.current": "104857600\n",
		dir + "/memory.max":     "max\n",
		dir + "/memory.high":    "127506841\n",
		path.Dir(dir) + "/memory.events": "low 0\nhigh 0\nmax 0\noom 57811\noom_kill 2\noom_group_kill 0\n" +
			"sock_throttled 0\n",
		dir + "/memory.events": "low 0\nhigh 1003\nmax 9\noom 57811\noom_kill 2\noom_group_kill 1\n",
		dir + "/memory.stat": "anon 73400320\nfile 32505856\nshmem 1048576\nslab_reclaimable 9\n" +
			"inactive_file 10485760\nactive_file 20971520\nunevictable 0\npgmajfault 5\n",
		dir + "/memory.swap.current": "4096\n",
		dir + "/memory.pressure": "some avg10=16.70 avg60=1.00 avg300=0.00 total=2000000\n" +
			"full avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
		dir + "/cgroup.procs":     "17\n",
		"system.slice/x/x/cgroup": "",
	})
}

func TestReadV2(t *testing.T) {
	tree, err := Open(v2())
	if err != nil {
		t.Fatal(err)
	}
	containers, _, err := tree.Containers()
	if err != nil || len(containers) != 1 || containers[0].Ref != (Ref{uid, id}) || tree.Version() != V2 {
		t.Fatalf("%v: %+v (%v)", tree.Version(), containers, err)
	}
	got, err := read(tree, containers[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Reading{
		Usage: 100 * memory.MiB, Limit: Unlimited, High: 127506841, Anon: 70 * memory.MiB, File: 30 * memory.MiB,
		Swap: 4 * memory.KiB, Faults: 5, Waited: new(time.Second),
		Events: Events{Kills: 2, LimitFailures: 57811, Known: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Demand() != 70*memory.MiB+4*memory.KiB {
		t.Errorf("demand is %v", got.Demand())
	}
	if events := tree.Events(containers[0].PodDir); events != (Events{Kills: 2, LimitFailures: 57811, Known: true}) {
		t.Errorf("the pod's events are %+v", events)
	}
	if events := tree.Events("gone"); events != (Events{}) {
		t.Errorf("events of a cgroup that has gone: %+v", events)
	}
	limit, err := tree.Limit(containers[0].Dir)
	if usage, failed := tree.Usage(containers[0].Dir); err != nil || failed != nil || limit != Unlimited ||
		usage != 100*memory.MiB {
		t.Errorf("%v of %v (%v, %v)", usage, limit, failed, err)
	}
}

func TestOpenWithoutMemory(t *testing.T) {
	for name, fsys := range map[string]fs.FS{
		"nothing":                   fstest.MapFS{},
		"v2 without the controller": files(map[string]string{"cgroup.controllers": "cpu io\n"}),
	} {
		if _, err := Open(fsys); !errors.Is(err, ErrNoMemoryController) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzProcCgroup: the path of a process's cgroup. Whoever may make cgroups below a container names them.
func FuzzProcCgroup(f *testing.F) {
	f.Add([]byte("9:name=systemd:/s\n4:memory:/kubepods/burstable/pod" + uid + "/" + id + "\n0::/\n"))
	f.Add([]byte("0::/kubepods.slice/kubepods-pod" + uid + ".slice/crio-conmon-" + id + ".scope/x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var ref Ref
		var ok bool
		budget.Check(t, budget.Budget{Bytes: 64 << 10, PerByte: 16, CPU: time.Second}, len(text), func() {
			if path, _, found := MemoryPath(text); found {
				ref, ok = ParsePath(path)
			}
		})
		if ok && (len(ref.ContainerID) != idLength || !isUID(ref.PodUID) ||
			!strings.Contains(string(text), ref.ContainerID)) {
			t.Errorf("%q is container %+v", text, ref)
		}
	})
}

// FuzzRead: every file of a cgroup holds this text, in both versions. What is read is never negative.
func FuzzRead(f *testing.F) {
	f.Add([]byte("9223372036854771712\n"))
	f.Add([]byte("total_rss 5\nanon 5\noom_kill 18446744073709551615\nactive_file 18446744073709551615\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\nfull total=9\n"))
	f.Add([]byte("max\n17\n0\n99999999999999999999999\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		budget.Check(t, budget.Budget{Bytes: 512 << 10, PerByte: 16, CPU: time.Second}, len(text), func() {
			for _, tree := range []*Tree{
				{fsys: v1(), version: V1, top: "memory", buffer: make([]byte, maxFile)},
				{fsys: v2(), version: V2, top: ".", buffer: make([]byte, maxFile)},
			} {
				for _, file := range tree.fsys.(fstest.MapFS) {
					file.Data = text
				}
				containers, _, err := tree.Containers()
				if err != nil || len(containers) != 1 {
					t.Fatalf("%d containers (%v)", len(containers), err)
				}
				r, _ := read(tree, containers[0].Dir)
				if least := min(r.Usage, r.Limit, r.High, r.Anon, r.File, r.Swap, r.Demand()); least < 0 {
					t.Errorf("%+v of %q", r, text)
				}
				if r.Waited != nil && *r.Waited < 0 {
					t.Errorf("waited %s of %q", r.Waited, text)
				}
				pids, _, _ := tree.Processes(containers[0].Dir)
				if slices.ContainsFunc(pids, func(pid int) bool { return pid <= 0 }) || len(pids) > maxProcesses {
					t.Errorf("%d processes %v", len(pids), pids)
				}
			}
		})
	})
}

// leaves is a file system that knows which folders contain no others, and counts reads anyway.
type leaves struct {
	fstest.MapFS
	opened map[string]int
}

func (l leaves) Open(name string) (fs.File, error) {
	l.opened[name]++
	return l.MapFS.Open(name)
}

func (l leaves) Leaf(dir string) bool { return !strings.HasSuffix(dir, id) }

// TestLeavesAreNotRead: a folder that is known to have none in it is not searched for one.
func TestLeavesAreNotRead(t *testing.T) {
	dir := "memory/kubepods/pod" + uid + "/" + id
	l := leaves{files(map[string]string{
		"memory/memory.stat": "", dir + "/cgroup.procs": "17\n", dir + "/a/cgroup.procs": "42\n",
	}), map[string]int{}}
	tree, err := Open(l)
	if err != nil {
		t.Fatal(err)
	}
	pids, all, err := tree.Processes(dir)
	if err != nil || !all || !slices.Equal(pids, []int{17, 42}) || l.opened[dir] != 1 || l.opened[dir+"/a"] != 0 {
		t.Errorf("processes %v, all %t (%v), opened %v", pids, all, err, l.opened)
	}
}

// keeper is a file system that keeps files open, and counts them.
type keeper struct {
	fstest.MapFS
	open *int
}

func (k keeper) Keep(name string) (io.ReadCloser, error) {
	if _, err := k.Open(name); err != nil {
		return nil, err
	}
	*k.open++
	return kept{k, name}, nil
}

type kept struct {
	keeper
	name string
}

func (k kept) Read(p []byte) (int, error) {
	if k.MapFS[k.name] == nil {
		return 0, syscall.ENODEV
	}
	return copy(p, k.MapFS[k.name].Data), nil
}

func (k kept) Close() error {
	*k.open--
	return nil
}

func read(t *Tree, dir string) (Reading, error) {
	g := t.Gauge(dir)
	defer g.Close()
	return g.Read()
}

// TestGauge: the files of the usage and the limit are opened once and closed once; each reading shows the numbers of
// its time, and that the cgroup has gone.
func TestGauge(t *testing.T) {
	open := 0
	files := fstest.MapFS{
		"memory/memory.stat": {}, "memory/a/memory.usage_in_bytes": {Data: []byte("4096\n")},
		"memory/a/memory.limit_in_bytes": {Data: []byte("16384\n")},
		"memory/b/memory.usage_in_bytes": {Data: []byte("odd\n")},
	}
	for name, fsys := range map[string]fs.FS{"kept": keeper{files, &open}, "opened each time": files} {
		tree, err := Open(fsys)
		if err != nil {
			t.Fatal(err)
		}
		gauge, odd, missing := tree.Gauge("memory/a"), tree.Gauge("memory/b"), tree.Gauge("memory/c")
		for _, want := range []memory.Bytes{4096, 8192} {
			files["memory/a/memory.usage_in_bytes"] = &fstest.MapFile{Data: fmt.Appendln(nil, int64(want))}
			if got, err := gauge.Usage(); got != want || err != nil {
				t.Errorf("%s: %s, %v, want %s", name, got, err, want)
			}
		}
		if got, err := gauge.Limit(); got != 16384 || err != nil {
			t.Errorf("%s: limit %s, %v", name, got, err)
		}
		if _, err := odd.Usage(); err == nil {
			t.Errorf("%s: a usage that is not a number", name)
		}
		if _, err := missing.Usage(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a cgroup that is not there: %v", name, err)
		}
		delete(files, "memory/a/memory.usage_in_bytes")
		if _, err := gauge.Usage(); err == nil {
			t.Errorf("%s: a cgroup that has gone", name)
		}
		for _, g := range []*Gauge{&gauge, &gauge, &odd, &missing} {
			g.Close()
		}
		if open != 0 {
			t.Errorf("%s: %d files are open", name, open)
		}
		files["memory/a/memory.usage_in_bytes"] = &fstest.MapFile{Data: []byte("4096\n")}
	}
}
