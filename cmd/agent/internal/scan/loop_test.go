// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/pods"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc/procdir"
)

// node is a node of cgroup v1 whose files a test writes, with a loop that reads them.
type node struct {
	t         testing.TB
	now       time.Time
	cgroups   fstest.MapFS
	proc      fstest.MapFS
	pods      *pods.Set
	revisions int
	writer    *writer
	loop      *Loop
}

// writer keeps what it is given, and reports it as written.
type writer struct {
	written []submitted
	alarms  []submitted
	results chan snapshot.Result
	fails   error
}

type submitted struct {
	pod    *snapshot.Pod
	status *v1alpha1.MemorySnapshotStatus
}

func (w *writer) Submit(pod *snapshot.Pod, status *v1alpha1.MemorySnapshotStatus) bool {
	snapshot.Summarize(status)
	w.written = append(w.written, submitted{pod, status})
	w.results <- snapshot.Result{Pod: pod.UID, Err: w.fails}
	return true
}

// Alarm keeps what it is given, and reports it as written.
func (w *writer) Alarm(pod *snapshot.Pod, status *v1alpha1.MemorySnapshotStatus) bool {
	w.alarms = append(w.alarms, submitted{pod, status})
	w.results <- snapshot.Result{Pod: pod.UID, Err: w.fails, Alarm: status.Alarm}
	return true
}

func (w *writer) Results() <-chan snapshot.Result { return w.results }

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{
		t: t, now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), proc: fstest.MapFS{}, pods: pods.NewSet(),
		cgroups: fstest.MapFS{"memory/memory.stat": {}, "memory/kubepods/burstable/cgroup.procs": {}},
		writer:  &writer{results: make(chan snapshot.Result, 1000)},
	}
	n.restart()
	if err := n.pods.Replace(nil, n.revision()); err != nil {
		t.Fatal(err)
	}
	return n
}

// restart is what a kill of the agent does: everything it knew is gone, and its pods come anew.
func (n *node) restart() {
	tree, err := cgroup.Open(n.cgroups)
	if err != nil {
		n.t.Fatal(err)
	}
	n.loop = &Loop{
		Tree: tree, Proc: n.proc, Pods: n.pods, Writer: n.writer, Node: "node-a", Log: slog.New(slog.DiscardHandler),
		Metrics: NewMetrics(prometheus.NewRegistry()),
	}
}

// dir returns the directory of the instance of a pod's container.
func dir(uid types.UID, id string) string {
	return "memory/kubepods/burstable/pod" + string(uid) + "/" + id
}

func uidOf(pod int) types.UID { return types.UID(fmt.Sprintf("254a8dbd-72d3-46e9-bb4e-%012d", pod)) }

func idOf(instance int) string { return fmt.Sprintf("%064x", instance) }

// set writes what the kernel counts for an instance.
func (n *node) set(uid types.UID, id string, usage memory.Bytes, kills int, pids ...int) {
	put := func(name, text string) { n.cgroups[name] = &fstest.MapFile{Data: []byte(text)} }
	at := dir(uid, id)
	put(at+"/memory.usage_in_bytes", strconv.FormatInt(int64(usage), 10))
	put(at+"/memory.limit_in_bytes", strconv.FormatInt(int64(128*memory.MiB), 10))
	put(at+"/memory.stat", fmt.Sprintf("total_rss %d\n", usage))
	put(at+"/memory.oom_control", fmt.Sprintf("under_oom 0\noom_kill %d\n", kills))
	put("memory/kubepods/burstable/pod"+string(uid)+"/memory.limit_in_bytes", "9223372036854771712")
	put("memory/kubepods/burstable/pod"+string(uid)+"/memory.usage_in_bytes", strconv.FormatInt(int64(usage), 10))
	procs := ""
	for i, pid := range pids {
		procs += strconv.Itoa(pid) + "\n"
		n.proc[strconv.Itoa(pid)+"/status"] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "Name:\tp%d\nNSpid:\t%d\t%d\nThreads:\t1\nVmRSS:\t%d kB\n", pid, pid, i*6+1, 1024*(i+1)),
		}
		n.proc[strconv.Itoa(pid)+"/cgroup"] = &fstest.MapFile{Data: []byte(procdir.Cgroup(string(uid), id))}
	}
	put(at+"/cgroup.procs", procs)
}

// end removes an instance's cgroup.
func (n *node) end(uid types.UID, id string) {
	maps.DeleteFunc(n.cgroups, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, dir(uid, id)) })
}

// killMain ends the first instance by a kill, and starts the second.
func (n *node) killMain(uid types.UID) {
	n.end(uid, idOf(1))
	n.pass(500 * time.Millisecond)
	n.set(uid, idOf(2), 3*memory.MiB, 0, 80)
	n.tell(uid, idOf(2), idOf(1))
	n.pass(2 * time.Second)
}

// tell makes the API server report the pod: its container app is this instance, and the previous one was killed.
func (n *node) tell(uid types.UID, id, killed string) {
	n.t.Helper()
	status := corev1.ContainerStatus{Name: "app", ContainerID: "containerd://" + id}
	if killed != "" {
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137, ContainerID: "containerd://" + killed,
			FinishedAt: metav1.NewTime(n.now.Truncate(time.Second)),
		}
	}
	n.update(uid, &status, nil)
}

// tellIn is tell of a pod in another namespace.
func (n *node) tellIn(namespace string, uid types.UID, id string) {
	n.t.Helper()
	if err := n.pods.Update(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: uid, ResourceVersion: n.revision()},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: "containerd://" + id},
		}},
	}); err != nil {
		n.t.Fatal(err)
	}
}

// revision is another resource version.
func (n *node) revision() string {
	n.revisions++
	return strconv.Itoa(n.revisions)
}

// update is the pod as the API server has it now.
func (n *node) update(uid types.UID, status *corev1.ContainerStatus, annotations map[string]string) {
	n.t.Helper()
	if err := n.pods.Update(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + string(uid[30:]), UID: uid, Annotations: annotations,
			ResourceVersion: n.revision(),
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{*status}},
	}); err != nil {
		n.t.Fatal(err)
	}
}

// pass lets time go by.
func (n *node) pass(d time.Duration) {
	for until := n.now.Add(d); n.now.Before(until); n.now = n.now.Add(TickEvery) {
		n.loop.Tick(n.t.Context(), n.now)
	}
}

// last is the only container of what was written last.
func (n *node) last() v1alpha1.ContainerSnapshot {
	n.t.Helper()
	if len(n.writer.written) == 0 {
		n.t.Fatal("nothing was written")
	}
	status := n.writer.written[len(n.writer.written)-1].status
	if len(status.Containers) != 1 || status.NodeName != "node-a" || status.CgroupVersion != "v1" {
		n.t.Fatalf("%+v", status)
	}
	return status.Containers[0]
}

func TestAPodIsWrittenOnceItStays(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.pass(25 * time.Second)
	if len(n.writer.written) != 0 {
		t.Fatalf("a pod of 25 s is written: %+v", n.writer.written)
	}
	n.pass(2 * time.Minute)
	if c := n.last(); len(n.writer.written) != 1 || c.Summary != "uses 30Mi of 128Mi, of which 30Mi cannot be reclaimed" {
		t.Errorf("%d writes: %s", len(n.writer.written), c.Summary)
	}
	n.pass(30 * time.Minute)
	if len(n.writer.written) != 1 {
		t.Errorf("%d writes of numbers that do not change", len(n.writer.written))
	}
	n.set(uid, idOf(1), 40*memory.MiB, 0, 70)
	n.pass(15 * time.Second)
	if len(n.writer.written) != 2 {
		t.Errorf("%d writes after a change by a third", len(n.writer.written))
	}
}

func TestAKillOfAChildIsWrittenAtOnce(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.pass(5 * time.Second)
	for i := range memory.Bytes(40) {
		n.set(uid, idOf(1), (30+2*i)*memory.MiB, 0, 70, 71)
		n.pass(TickEvery)
	}
	n.set(uid, idOf(1), 5*memory.MiB, 1, 70)
	n.pass(time.Second)
	c := n.last()
	if len(n.writer.written) != 1 || c.OOMKills != 1 || c.LastKill == nil || c.LastKill.Kind != "ChildProcess" {
		t.Fatalf("%d writes, %+v", len(n.writer.written), c)
	}
	if k := c.LastKill; len(k.Processes) != 1 || k.Processes[0].Name != "p71" || k.Processes[0].PID != 7 ||
		len(k.Series) < 15 || k.GrowthPerSecond.Value()>>20 != 7 || k.ContainerLimit.String() != "128Mi" {
		t.Errorf("%+v", k)
	}
}

// TestAnOrdinaryEndAfterAKillOfAChild: the kubelet reports OOMKilled although the container ended in an ordinary way.
func TestAnOrdinaryEndAfterAKillOfAChild(t *testing.T) {
	for exit, kills := range map[int32]int64{3: 1, 137: 2} {
		n, uid := newNode(t), uidOf(1)
		n.set(uid, idOf(1), 30*memory.MiB, 0, 70, 71)
		n.tell(uid, idOf(1), "")
		n.pass(5 * time.Second)
		n.set(uid, idOf(1), 5*memory.MiB, 1, 70)
		n.pass(time.Minute)
		n.end(uid, idOf(1))
		n.pass(500 * time.Millisecond)
		n.set(uid, idOf(2), 3*memory.MiB, 0, 80)
		status := corev1.ContainerStatus{Name: "app", ContainerID: "containerd://" + idOf(2)}
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: exit, ContainerID: "containerd://" + idOf(1),
			FinishedAt: metav1.NewTime(n.now.Truncate(time.Second)),
		}
		n.update(uid, &status, nil)
		n.pass(2 * time.Minute)
		if c := n.last(); int64(c.OOMKills) != kills || (c.LastKill.Kind == "ChildProcess") != (kills == 1) {
			t.Errorf("exit %d: %d kills, the last one of %s, want %d", exit, c.OOMKills, c.LastKill.Kind, kills)
		}
	}
}

// looks notes which containers it is asked to inspect, and finds nothing.
type looks struct {
	at    []time.Time
	last  Inspection
	now   func() time.Time
	found chan Finding
}

func (l *looks) Start(inspection Inspection) bool {
	l.at, l.last = append(l.at, l.now()), inspection
	l.found <- Finding{Container: inspection.Container, Namespace: inspection.Namespace}
	return true
}

func (l *looks) Found() <-chan Finding { return l.found }

// TestWhatDoesNotChangeIsLookedIntoRarely: looks are most of what the agent costs.
func TestWhatDoesNotChangeIsLookedIntoRarely(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	inspector := &looks{now: func() time.Time { return n.now }, found: make(chan Finding, 1)}
	n.loop.Inspector = inspector
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.pass(59 * time.Minute)
	if len(inspector.at) != 1 || inspector.last.Namespace != "shop" || len(inspector.last.PIDs) != 1 {
		t.Fatalf("%d looks within an hour without a change, the last %+v", len(inspector.at), inspector.last)
	}
	n.set(uid, idOf(1), 33*memory.MiB, 0, 70)
	n.pass(time.Minute / 2)
	if len(inspector.at) != 1 {
		t.Error("inspected for a change by a tenth")
	}
	n.set(uid, idOf(1), 36*memory.MiB, 0, 70)
	n.pass(time.Minute / 2)
	if len(inspector.at) != 2 {
		t.Errorf("%d looks after a change by a fifth", len(inspector.at))
	}
	n.pass(59 * time.Minute)
	if len(inspector.at) != 2 {
		t.Errorf("%d looks an hour later without a change", len(inspector.at))
	}
	n.pass(2 * time.Minute)
	if len(inspector.at) != 3 {
		t.Errorf("%d looks: one an hour is due whatever it uses", len(inspector.at))
	}
}

func TestAKillOfTheMainProcess(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 110*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.pass(5 * time.Second)
	n.killMain(uid)
	c := n.last()
	if c.LastKill == nil || c.LastKill.Kind != "MainProcess" || c.LastKill.Evidence != "PodStatus" || c.OOMKills != 1 {
		t.Fatalf("%+v", c)
	}
	if len(c.LastKill.Processes) != 1 || c.LastKill.Usage.String() != "110Mi" {
		t.Errorf("%+v", c.LastKill)
	}
	n.pass(2 * time.Minute)
	if c := n.last(); len(n.writer.written) != 2 || c.Usage == nil || c.Usage.String() != "3Mi" || c.LastKill == nil {
		t.Errorf("what came of it is not told a minute later: %d writes, %+v", len(n.writer.written), c)
	}
}

// TestAProcessHasTheNameOfItsProgram: a runtime starts a container as a small process of another name, which executes
// the program; so do launchers.
func TestAProcessHasTheNameOfItsProgram(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.pass(5 * time.Second) // the container is new
	n.set(uid, idOf(1), 300*memory.KiB, 0, 70)
	n.proc["70/status"] = &fstest.MapFile{Data: []byte("Name:\trunc:[2:INIT]\nNSpid:\t70\t1\nThreads:\t1\nVmRSS:\t4 kB\n")}
	n.tell(uid, idOf(1), "")
	n.pass(500 * time.Millisecond)
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70)
	n.pass(500 * time.Millisecond)
	n.killMain(uid)
	if k := n.last().LastKill; k == nil || len(k.Processes) != 1 || k.Processes[0].Name != "p70" {
		t.Errorf("%+v", k)
	}
}

// TestAKillThatTakesLong: the main process is reported although the kernel has not ended it yet.
func TestAKillThatTakesLong(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 110*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.pass(5 * time.Second)
	n.set(uid, idOf(1), 126*memory.MiB, 1, 70)
	n.proc["70/status"].Data = append(n.proc["70/status"].Data, "ShdPnd:\t0000000000000100\n"...)
	n.pass(time.Minute)
	for _, w := range n.writer.written {
		if k := w.status.Containers[0].LastKill; k != nil && (k.Kind != "MainProcess" || len(k.Processes) != 1) {
			t.Errorf("%+v", k)
		}
	}
	if c := n.last(); c.LastKill == nil || c.OOMKills != 1 {
		t.Errorf("%+v", c)
	}
}

// TestNumberIsAssignedToANeighbor: a number that a container's cgroup listed belongs to a process of another container
// by the time it is read. Neither its name nor its size gets into the record of the kill.
func TestNumberIsAssignedToANeighbor(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70, 71, 72)
	n.tell(uid, idOf(1), "")
	n.proc["71/cgroup"].Data = []byte(procdir.Cgroup(string(uidOf(2)), idOf(2)))
	n.pass(5 * time.Second)
	n.set(uid, idOf(1), 5*memory.MiB, 1, 70)
	n.pass(time.Minute)
	k := n.last().LastKill
	if k == nil || len(k.Processes) != 1 || k.Processes[0].Name != "p72" {
		t.Errorf("%+v", k)
	}
}

// TestNestedNamespaces: process 1 of a PID namespace inside of the container is not the container's main process.
func TestNestedNamespaces(t *testing.T) {
	for name, killed := range map[string]struct {
		left []int
		want string
	}{
		"the sandbox dies":      {[]int{70}, "ChildProcess"},
		"the main process dies": {[]int{71}, "MainProcess"},
	} {
		n, uid := newNode(t), uidOf(1)
		n.set(uid, idOf(1), 30*memory.MiB, 0, 70, 71)
		n.tell(uid, idOf(1), "")
		nested := func() { // after each set, which writes it anew
			n.proc["71/status"].Data = []byte("Name:\tx\nNSpid:\t71\t7\t1\nThreads:\t1\nVmRSS:\t2048 kB\n")
		}
		nested()
		n.pass(5 * time.Second)
		n.set(uid, idOf(1), 5*memory.MiB, 1, killed.left...)
		nested()
		n.pass(time.Minute)
		if k := n.last().LastKill; k == nil || k.Kind != killed.want || len(k.Processes) != 1 {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

// TestARestartOfTheAgent: earlier kills are not reported as new ones.
func TestARestartOfTheAgent(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 30*memory.MiB, 3, 70)
	n.tell(uid, idOf(1), "")
	n.restart()
	n.pass(2 * time.Minute)
	if c := n.last(); c.OOMKills != 0 || c.LastKill != nil {
		t.Errorf("%+v", c)
	}
}

// TestPodsByTheHundred: what is kept goes with the pods, and what lives for seconds is not written.
func TestPodsByTheHundred(t *testing.T) {
	n := newNode(t)
	for i := range 150 {
		uid := uidOf(i)
		n.set(uid, idOf(i+1), 30*memory.MiB, 0)
		n.tell(uid, idOf(i+1), "")
		n.pass(time.Second)
		n.end(uid, idOf(i+1))
		gone := metav1.ObjectMeta{UID: uid, ResourceVersion: n.revision()}
		if err := n.pods.Delete(&corev1.Pod{ObjectMeta: gone}); err != nil {
			t.Fatal(err)
		}
	}
	n.pass(2 * keptAfter)
	if len(n.loop.containers) != 0 || len(n.loop.objects) != 0 || len(n.writer.written) != 0 {
		t.Errorf("%d containers and %d pods are kept, %d were written", len(n.loop.containers), len(n.loop.objects),
			len(n.writer.written))
	}
}

// TestTheAPIServerIsAway: what could not be written is written later, and not more often than the budget allows.
func TestTheAPIServerIsAway(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.writer.fails = errors.New("the API server is away")
	n.pass(30 * time.Minute)
	if tries := len(n.writer.written); tries < 25 || tries > 40 {
		t.Errorf("%d tries in half an hour, want one a minute", tries)
	}
	n.writer.fails, n.writer.written = nil, nil
	n.pass(2 * time.Minute)
	if len(n.writer.written) != 1 {
		t.Errorf("%d writes when it is back", len(n.writer.written))
	}
}

// TestANamespaceIsDeleted: a write that is refused because the pod ends with its namespace is not tried again.
func TestANamespaceIsDeleted(t *testing.T) {
	n, uid := newNode(t), uidOf(1)
	n.set(uid, idOf(1), 30*memory.MiB, 0, 70)
	n.tell(uid, idOf(1), "")
	n.writer.fails = fmt.Errorf("writing: %w", snapshot.ErrDeleted)
	n.pass(4 * time.Minute)
	if tries := len(n.writer.written); tries != 1 {
		t.Errorf("%d tries, want one", tries)
	}
}

// TestContainersOfOthers: what no pod of this node names is not read for long.
func TestContainersOfOthers(t *testing.T) {
	n := newNode(t)
	n.set(uidOf(1), idOf(1), 120*memory.MiB, 0, 70)
	n.pass(10 * time.Minute)
	if c := n.loop.containers[idOf(1)]; n.now.Sub(c.due) < 8*time.Minute || len(n.writer.written) != 0 {
		t.Errorf("due %s ago, %d writes", n.now.Sub(c.due), len(n.writer.written))
	}
}

// FuzzPrintable: the name of a process, which it chooses.
func FuzzPrintable(f *testing.F) {
	f.Add("node")
	f.Add("\x1b[2J\u202e\xff`$(reboot)`")
	f.Fuzz(func(t *testing.T, text string) {
		var name string
		budget.Check(t, budget.Budget{Bytes: 64 << 10, CPU: time.Second}, len(text), func() {
			name = printable(text)
		})
		if name == "" || len(name) > len(text) && text != "" {
			t.Errorf("%q is named %q", text, name)
		}
		for _, c := range []byte(name) {
			if c < ' ' || c > '~' {
				t.Errorf("%q is named %q", text, name)
			}
		}
	})
}

// finder is an Inspector that finds what the container uses.
type finder struct {
	node  *node
	found chan Finding
	count int
	order []string
	spent map[string]time.Duration // of one inspection, by namespace
}

func (e *finder) Start(inspection Inspection) bool {
	e.count++
	e.order = append(e.order, inspection.Container)
	usage := e.node.loop.containers[inspection.Container].recorder.Usage()
	e.found <- Finding{
		Container: inspection.Container, Namespace: inspection.Namespace, Spent: e.spent[inspection.Namespace],
		Memory: &v1alpha1.MemoryParts{Resident: usage.Quantity()},
	}
	return true
}

func (e *finder) Found() <-chan Finding { return e.found }

// TestWhatJumpedIsLookedInto: who comes a minute after a burst finds what it left, and a container that does not
// change is left alone.
func TestWhatJumpedIsLookedInto(t *testing.T) {
	n := newNode(t)
	e := &finder{node: n, found: make(chan Finding, 1)}
	n.loop.Inspector = e
	uid, id := uidOf(1), idOf(1)
	n.set(uid, id, 30*memory.MiB, 0, 11)
	n.tell(uid, id, "")
	n.pass(5 * time.Minute)
	if e.count > 1 {
		t.Errorf("looked %d times into a container whose memory stays", e.count)
	}
	n.set(uid, id, 60*memory.MiB, 0, 11)
	n.pass(time.Minute)
	if c := n.last(); c.Memory == nil || c.Memory.Resident.Value() != int64(60*memory.MiB) ||
		c.Usage.Value() != c.Memory.Resident.Value() {
		t.Errorf("a minute after it jumped to 60Mi is written %+v", c)
	}
	looked := e.count
	n.pass(9 * time.Minute)
	if e.count > looked+1 {
		t.Errorf("looked %d times more into what stays where it jumped to", e.count-looked)
	}
}

// TestTheFirstWriteIsOfAnInspection: what an agent knows before it has inspected a container is less than what the
// previous agent wrote, and would be written twice. Kills and stalls are reported immediately, and a container that is
// never inspected after a while.
func TestTheFirstWriteIsOfAnInspection(t *testing.T) {
	for name, c := range map[string]struct {
		after, within time.Duration // of the inspection, and of the first write
		killed        bool
	}{
		"inspected late":  {after: 3 * time.Minute, within: 3*time.Minute + time.Second},
		"never inspected": {after: time.Hour, within: maxInspected + time.Second},
		"killed before":   {after: time.Hour, within: 20 * time.Second, killed: true},
	} {
		n := newNode(t)
		e := &finder{node: n, found: make(chan Finding, 1)}
		n.loop.Inspector = e
		n.loop.allowance.urgent.next, n.loop.allowance.normal.next = n.now.Add(c.after), n.now.Add(c.after)
		n.set(uidOf(1), idOf(1), 30*memory.MiB, 0, 11)
		n.tell(uidOf(1), idOf(1), "")
		n.pass(10 * time.Second)
		if c.killed {
			n.set(uidOf(1), idOf(1), 30*memory.MiB, 1, 11)
		}
		n.pass(c.within - 15*time.Second)
		if early := len(n.writer.written); (early > 0) != c.killed {
			t.Errorf("%s: %d writes within %s", name, early, c.within-5*time.Second)
		}
		n.pass(5*time.Second + TickEvery)
		if len(n.writer.written) != 1 {
			t.Errorf("%s: %d writes within %s", name, len(n.writer.written), c.within)
		}
		if got := n.last(); (got.Inspection == v1alpha1.InspectionDone) != (c.after < c.within) {
			t.Errorf("%s: %s is written", name, got.Inspection)
		}
		n.pass(50 * time.Minute)
		if len(n.writer.written) != 1 {
			t.Errorf("%s: %d writes within an hour", name, len(n.writer.written))
		}
	}
}

// TestWhoAsksDoesNotWaitForFirstLooks: of many containers that have started, a requested one is inspected first, though
// not before its usage has settled.
func TestWhoAsksDoesNotWaitForFirstLooks(t *testing.T) {
	n := newNode(t)
	e := &finder{node: n, found: make(chan Finding, 1)}
	n.loop.Inspector = e
	n.loop.allowance.urgent.next, n.loop.allowance.normal.next = n.now.Add(time.Minute), n.now.Add(time.Minute)
	for i := 1; i <= 9; i++ {
		n.set(uidOf(i), idOf(i), 30*memory.MiB, 0, i)
		n.tell(uidOf(i), idOf(i), "")
	}
	n.pass(50 * time.Second)
	last, id := uidOf(10), idOf(10)
	n.set(last, id, 30*memory.MiB, 0, 10)
	n.tell(last, id, "")
	n.pass(2 * time.Second)
	status := corev1.ContainerStatus{Name: "app", ContainerID: "containerd://" + id}
	n.update(last, &status, map[string]string{v1alpha1.InspectAnnotation: "now"})
	n.pass(7 * time.Second)
	if e.count > 0 {
		t.Fatalf("%d looks while it rests", e.count)
	}
	n.pass(5 * time.Second)
	if len(e.order) == 0 || e.order[0] != id {
		t.Errorf("looked into %v, want %s first", e.order, id)
	}
}

// TestExpensiveInspectionsMakeTheirNamespaceWait: the containers of other namespaces are inspected meanwhile, and a
// container near its limit waits less.
func TestExpensiveInspectionsMakeTheirNamespaceWait(t *testing.T) {
	n := newNode(t)
	e := &finder{node: n, found: make(chan Finding, 1), spent: map[string]time.Duration{"bank": 5 * time.Second}}
	n.loop.Inspector = e
	for i, namespace := range []string{"bank", "bank", "shop"} {
		id := idOf(i + 1)
		n.set(uidOf(i+1), id, 30*memory.MiB, 0, 10+i)
		n.tellIn(namespace, uidOf(i+1), id)
	}
	looks := func(d time.Duration) (ofBank, ofShop int) {
		e.order = nil
		for i, until := memory.Bytes(0), n.now.Add(d); n.now.Before(until); i++ { // by a half each time
			n.set(uidOf(1), idOf(1), 20*memory.MiB<<(i%2), 0, 10)
			n.set(uidOf(3), idOf(3), 20*memory.MiB<<(i%2), 0, 12)
			n.pass(30 * time.Second)
		}
		for _, id := range e.order {
			if id == idOf(3) {
				ofShop++
			} else {
				ofBank++
			}
		}
		return ofBank, ofShop
	}
	if bank, shop := looks(15 * time.Minute); bank != 1 || shop < 20 {
		t.Errorf("%d inspections of the namespace that costs much, %d of the other one", bank, shop)
	}
	if bank, _ := looks(15 * time.Minute); bank != 1 {
		t.Errorf("%d inspections in the next quarter of an hour, want one", bank)
	}
	e.order = nil
	n.set(uidOf(2), idOf(2), 125*memory.MiB, 0, 11)
	n.pass(5 * time.Minute)
	if len(e.order) < 2 || e.order[0] != idOf(2) {
		t.Errorf("near its limit: inspected %v", e.order)
	}
}

// TestNothingIsPreparedWhileInspectionsRest: to list the processes of the container that is most due costs more than
// reading its usage.
func TestNothingIsPreparedWhileInspectionsRest(t *testing.T) {
	n := newNode(t)
	e := &finder{node: n, found: make(chan Finding, 1)}
	n.loop.Inspector = e
	n.loop.allowance.urgent.next = n.now.Add(time.Hour)
	n.set(uidOf(1), idOf(1), 30*memory.MiB, 0, 11)
	n.tell(uidOf(1), idOf(1), "")
	n.pass(5 * time.Minute)
	if e.count > 0 {
		t.Errorf("asked %d times", e.count)
	}
}

// TestAStallIsWrittenWithTheMinuteBefore: and with what filled the container, and the limits that held it.
func TestAStallIsWrittenWithTheMinuteBefore(t *testing.T) {
	n := newNode(t)
	n.loop.Inspector = &finder{node: n, found: make(chan Finding, 1)}
	uid, id := uidOf(1), idOf(1)
	n.set(uid, id, 30*memory.MiB, 0, 11)
	n.tell(uid, id, "")
	n.pass(2 * time.Minute)
	for i := range memory.Bytes(48) { // 2 MiB in half a second, to 126 of 128
		n.set(uid, id, (32+2*i)*memory.MiB, 0, 11)
		n.pass(2 * TickEvery)
	}
	stat := dir(uid, id) + "/memory.stat"
	for faults := 0; n.last().LastStall == nil; faults += 10 {
		if faults > 3000 {
			t.Fatal("no stall was written")
		}
		n.cgroups[stat] = &fstest.MapFile{Data: fmt.Appendf(nil, "total_rss %d\ntotal_pgmajfault %d\n", 120<<20, faults)}
		n.pass(time.Second)
	}
	s := n.last().LastStall
	if s.Ended != nil || s.ContainerLimit.String() != "128Mi" || s.PodLimit != nil || s.Usage.String() != "126Mi" ||
		s.Anonymous.String() != "120Mi" || s.GrowthPerSecond == nil || s.GrowthPerSecond.Value() < 2<<20 {
		t.Errorf("%+v", s)
	}
	late := slices.DeleteFunc(slices.Clone(s.Series), func(p v1alpha1.UsagePoint) bool {
		return p.MillisecondsBefore >= 10_000
	})
	if first := s.Series[0].Usage; first.Value() > 64<<20 || len(late) < 20 {
		t.Errorf("%d points from %s, %d in the last ten seconds", len(s.Series), &first, len(late))
	}
	if s.Memory == nil || s.Memory.Resident.Value() < 100<<20 {
		t.Errorf("filled by %+v", s.Memory)
	}
	points, filled := len(s.Series), s.Memory.Resident
	n.set(uid, id, 40*memory.MiB, 0, 11)
	n.pass(3 * time.Minute)
	if s = n.last().LastStall; s.Ended == nil || len(s.Series) != points || s.Memory.Resident.Cmp(filled) != 0 {
		t.Errorf("when it is over: %+v", s)
	}
}

// TestWhoAsksIsAnswered: each new value of the annotation is one inspection, whose result is written immediately,
// although nothing has changed; the same value is not another inspection.
func TestWhoAsksIsAnswered(t *testing.T) {
	n := newNode(t)
	e := &finder{node: n, found: make(chan Finding, 1)}
	n.loop.Inspector = e
	uid, id := uidOf(1), idOf(1)
	n.set(uid, id, 30*memory.MiB, 0, 11)
	n.tell(uid, id, "")
	n.pass(5 * time.Minute)
	for i, asked := range []string{"one", "two"} {
		looked, written := e.count, len(n.writer.written)
		status := corev1.ContainerStatus{Name: "app", ContainerID: "containerd://" + id}
		n.update(uid, &status, map[string]string{v1alpha1.InspectAnnotation: asked})
		n.pass(2 * time.Second)
		if e.count != looked+1 || len(n.writer.written) != written+1 || n.last().Inspection != v1alpha1.InspectionDone {
			t.Errorf("request %d: %d looks and %d writes within two seconds", i+1, e.count-looked,
				len(n.writer.written)-written)
		}
		n.pass(5 * time.Minute)
		if e.count != looked+1 {
			t.Errorf("request %d: %d looks in five minutes", i+1, e.count-looked)
		}
	}
}

// TestWhoseKillItWas: what the agent reads of a node with cgroup v2 whose container is killed, as it ends and while it
// lives, before or after the kubelet's status.
func TestWhoseKillItWas(t *testing.T) {
	uid := uidOf(1)
	pod := "kubepods/burstable/pod" + string(uid)
	for name, c := range map[string]struct {
		pod, neighbor string // oom of the pod and of its other container at the kill
		survives      bool
		own           string // of a container that survives
		status        bool   // the kubelet reports the end before the agent finds it
		want          string
	}{
		"at the limit":                     {pod: "57811", neighbor: "0", want: "Yes"},
		"at the limit, the status first":   {pod: "57811", neighbor: "0", status: true, want: "Yes"},
		"by the node":                      {pod: "4", neighbor: "0", want: "No"},
		"by the node, the status first":    {pod: "4", neighbor: "0", status: true, want: "No"},
		"perhaps the neighbor's":           {pod: "9", neighbor: "5"},
		"a child at its own limit":         {pod: "9", neighbor: "0", survives: true, own: "5", want: "Yes"},
		"a child by the node":              {pod: "4", neighbor: "0", survives: true, own: "0", want: "No"},
		"a child, perhaps the neighbor's":  {pod: "9", neighbor: "5", survives: true, own: "0"},
		"a child, the neighbor's and this": {pod: "12", neighbor: "5", survives: true, own: "3", want: "Yes"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.cgroups = fstest.MapFS{"cgroup.controllers": {Data: []byte("cpu io memory pids\n")}}
			n.restart()
			put := func(file, text string) { n.cgroups[pod+file] = &fstest.MapFile{Data: []byte(text)} }
			events := func(cgroup, oom, kills string) {
				put(cgroup+"/memory.events", "low 0\nhigh 0\nmax 31\noom "+oom+"\noom_kill "+kills+"\noom_group_kill 0\n")
			}
			add := func(id string) {
				put("/"+id+"/memory.current", "41943040")
				put("/"+id+"/memory.max", "134217728")
				put("/"+id+"/memory.high", "max")
				put("/"+id+"/memory.stat", "anon 41943040\n")
				put("/"+id+"/cgroup.procs", "")
				events("/"+id, "0", "0")
			}
			put("/memory.max", "268435456")
			put("/memory.current", "41943040")
			events("", "4", "2")
			add(idOf(1))
			add(idOf(2))
			n.tell(uid, idOf(1), "")
			n.pass(15 * time.Second)
			events("", c.pod, "3")
			events("/"+idOf(2), c.neighbor, "0")
			if c.survives {
				events("/"+idOf(1), c.own, "1")
			} else {
				maps.DeleteFunc(n.cgroups, func(name string, _ *fstest.MapFile) bool {
					return strings.HasPrefix(name, pod+"/"+idOf(1))
				})
				if !c.status {
					n.pass(15 * time.Second)
				}
				n.tell(uid, idOf(3), idOf(1))
			}
			n.pass(15 * time.Second)
			kill := n.writer.written[len(n.writer.written)-1].status.Containers[0].LastKill
			if kill == nil || kill.LimitReached != c.want {
				t.Errorf("%+v, want %q", kill, c.want)
			}
		})
	}
}
