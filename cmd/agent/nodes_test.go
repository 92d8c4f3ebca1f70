// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/pods"
	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/tree"
)

// `make bench-agent-writes` names how many nodes; go test ./... does not, and leaves it out.
var (
	nodesFlag  = flag.Int("nodes", 0, "nodes whose agents write; 0: the test is left out")
	podsFlag   = flag.Int("pods", 10, "pods of each node")
	spacesFlag = flag.Int("namespaces", 20, "namespaces that the pods are in")
	hoursFlag  = flag.Float64("hours", 1, "hours that go by")
)

// How the pods of a node behave. Of a hundred, ninety change by 2 %, five go to another level every five minutes, four
// double and halve every twenty minutes, and one loses a child to an OOM kill every ten minutes.
type behavior int

const (
	flat behavior = iota
	wanders
	jumps
	killed
)

func behaviorOf(i int) behavior {
	switch i % 100 {
	case 7, 27, 47, 67, 87:
		return wanders
	case 13, 33, 53, 73:
		return jumps
	case 99:
		return killed
	}
	return flat
}

// simStep is how often the clock of the nodes ticks. The agent reads containers far below their limit as often.
const simStep = 10 * time.Second

// most is how many writes a pod may have in so many hours (internal/flightrecorder/writes.go): six an hour of changed
// numbers, three of them in a row; two of numbers that jumped; of kills one a minute, six of them in a row, each with
// one that follows.
func (b behavior) most(hours float64) int {
	n := 3 + 6*hours + 2 + 2*hours
	if b == killed {
		n += 2 * 6 * hours
	}
	return int(n) + 1 // its first
}

// simNode is a node with a real loop, a real writer and made-up cgroups.
type simNode struct {
	name    string
	cgroups fstest.MapFS
	loop    *scan.Loop
	writer  *counted
	pods    []simPod
	random  *rand.Rand
}

type simPod struct {
	behavior
	dir   string
	kills int
	level memory.Bytes
}

// counted counts what is handed over.
type counted struct {
	*snapshot.Writer
	handed int // since the last tick
	of     map[types.UID]int
}

func (c *counted) Submit(pod *snapshot.Pod, status *v1alpha1.MemorySnapshotStatus) bool {
	if !c.Writer.Submit(pod, status) {
		return false
	}
	c.handed++
	c.of[pod.UID]++
	return true
}

// filled is what tier See would find: as much as it finds of a Node.js server.
type filled struct{ found chan scan.Finding }

func (f filled) Found() <-chan scan.Finding { return f.found }

func (f filled) Start(look scan.Inspection) bool {
	m := &v1alpha1.MemoryParts{
		CoveragePercent: 99, Processes: 1, Resident: resource.MustParse("100Mi"), Unexplained: resource.MustParse("64Ki"),
		Time: metav1.Now().Rfc3339Copy(), Summary: strings.Repeat("x", 120),
	}
	for i := range 14 {
		m.Parts = append(m.Parts, v1alpha1.MemoryPart{
			Name: fmt.Sprintf("part number %d of it", i), Group: v1alpha1.PartHeap, Resident: resource.MustParse("7Mi"),
		})
	}
	for i := range 4 {
		m.Savings = append(m.Savings, v1alpha1.PredictedSaving{
			Action: fmt.Sprintf("action-%d", i), How: strings.Repeat("h", 80), Method: strings.Repeat("m", 160),
			Amount: resource.MustParse("7Mi"),
		})
	}
	select {
	case f.found <- scan.Finding{Container: look.Container, Memory: m}:
		return true
	default:
		return false
	}
}

// requests notes what the API server answered and how long it took.
type requests struct {
	next http.RoundTripper
	mu   *sync.Mutex
	took *[]time.Duration
	bad  map[string]int
	sent *int64
}

func (r requests) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := r.next.RoundTrip(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.sent += max(req.ContentLength, 0)
	*r.took = append(*r.took, time.Since(began))
	switch {
	case err != nil:
		r.bad[err.Error()]++
	case resp.StatusCode >= 400 && (resp.StatusCode != http.StatusNotFound || req.Method != http.MethodGet):
		r.bad[req.Method+" "+resp.Status]++
	}
	return resp, err
}

// TestWritesOfNodes has the agents of many nodes write through a real API server, with the role and the admission
// policies that they are installed with, while the clock of the nodes runs ahead.
func TestWritesOfNodes(t *testing.T) {
	if *nodesFlag == 0 {
		t.Skip("make bench-agent-writes")
	}
	config := expect.APIServer(t)
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	install(ctx, t, c)
	began := time.Now()
	made := fill(ctx, t, c)
	fmt.Printf("%d nodes and %d pods in %d namespaces were made in %s\n",
		*nodesFlag, *nodesFlag**podsFlag, *spacesFlag, time.Since(began).Round(time.Second))

	var mu sync.Mutex
	var took []time.Duration
	var sent int64
	counting := requests{mu: &mu, took: &took, bad: map[string]int{}, sent: &sent}
	nodes := make([]*simNode, *nodesFlag)
	for i := range nodes {
		nodes[i] = newSimNode(ctx, t, config, counting, i, made[i])
	}
	await(ctx, t, nodes[0], made[0][0])
	took, sent = nil, 0
	clear(counting.bad)

	began = time.Now()
	cpu := serversCPU(t)
	busiest, peak := 0, make([]int, 6) // of the last minute
	for since := time.Duration(0); since < time.Duration(*hoursFlag*float64(time.Hour)); since += simStep {
		handed := step(ctx, t, nodes, since, began.Add(since))
		peak = append(peak[1:], handed)
		sum := 0
		for _, n := range peak {
			sum += n
		}
		busiest = max(busiest, sum)
	}
	lasted := time.Since(began)
	cpu = serversCPU(t) - cpu

	total, beyond := 0, 0
	by := map[behavior][]int{}
	for _, n := range nodes {
		for i := range n.pods {
			writes := n.writer.of[podOf(made, n, i).UID]
			total += writes
			by[n.pods[i].behavior] = append(by[n.pods[i].behavior], writes)
			if writes > n.pods[i].most(*hoursFlag) {
				beyond++
			}
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	fmt.Printf("nodes=%d pods=%d hours=%g writes=%d writes_per_node_hour=%.1f writes_per_second=%.2f "+
		"busiest_minute_per_second=%.1f requests=%d bytes_sent_per_write=%d\n",
		*nodesFlag, *nodesFlag**podsFlag, *hoursFlag, total, float64(total)/float64(*nodesFlag)/(*hoursFlag),
		float64(total)/(*hoursFlag*3600), float64(busiest)/60, len(took), sent/int64(max(total, 1)))
	for b, name := range []string{"flat", "wanders", "jumps", "killed"} {
		if all := by[behavior(b)]; len(all) > 0 {
			slices.Sort(all)
			fmt.Printf("pods that are %-8s %6d, writes of each: median %d, most %d of %d that are allowed\n", name+":", len(all),
				all[len(all)/2], all[len(all)-1], behavior(b).most(*hoursFlag))
		}
	}
	fmt.Printf("wall=%s (%.0f writes a second) request_p50=%s p99=%s max=%s servers_cpu=%s cpu_per_write=%s\n",
		lasted.Round(time.Second), float64(total)/lasted.Seconds(), at(0.5), at(0.99), at(1), cpu.Round(time.Second),
		(cpu / time.Duration(max(total, 1))).Round(10*time.Microsecond))
	if len(counting.bad) > 0 {
		t.Errorf("refused: %v", counting.bad)
	}
	if beyond > 0 {
		t.Errorf("%d pods were written more often than docs/reference/inspection.md allows", beyond)
	}
}

// install applies what the agent's tree has for the API server: the role and the policy that holds it to its own node.
func install(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	for _, name := range []string{"role.yaml", "role_binding.yaml", "admission_policy.yaml"} {
		text, err := os.ReadFile(filepath.Join(tree.Root(), "config", "agent", "watch", name))
		if err != nil {
			t.Fatal(err)
		}
		for reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var object unstructured.Unstructured
			if err = errors.Join(err, yamlutil.Unmarshal(document, &object.Object)); err == nil {
				err = c.Create(ctx, &object)
			}
			if err != nil {
				t.Fatal(name, err)
			}
		}
	}
}

// fill makes nodes and pods, and returns those of each node.
func fill(ctx context.Context, t *testing.T, c client.Client) [][]*corev1.Pod {
	t.Helper()
	for i := range *spacesFlag {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space(i)}}
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "default"}}
		if err := errors.Join(c.Create(ctx, ns), c.Create(ctx, sa)); err != nil {
			t.Fatal(err)
		}
	}
	made := make([][]*corev1.Pod, *nodesFlag)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range made {
		group.Go(func() error {
			name := nodeName(i)
			if err := c.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				return err
			}
			for j := range *podsFlag {
				n := i**podsFlag + j
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: space(n % *spacesFlag), Name: fmt.Sprintf("web-%06d", n)},
					Spec: corev1.PodSpec{
						NodeName: name, Containers: []corev1.Container{{Name: "app", Image: "app"}},
					},
				}
				if err := c.Create(ctx, pod); err != nil {
					return err
				}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "app", ContainerID: "containerd://" + instance(n), Image: "app", ImageID: "app",
				}}
				made[i] = append(made[i], pod)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return made
}

func space(i int) string    { return fmt.Sprintf("team-%d", i) }
func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }
func instance(n int) string { return fmt.Sprintf("%064x", n+1) }

// podOf is the pod of that index on a node.
func podOf(made [][]*corev1.Pod, n *simNode, i int) *corev1.Pod {
	index, _ := strconv.Atoi(strings.TrimPrefix(n.name, "node-"))
	return made[index][i]
}

// newSimNode is a node whose agent writes as its own service account, on its own node.
func newSimNode(
	ctx context.Context, t *testing.T, config *rest.Config, counting requests, index int, made []*corev1.Pod,
) *simNode {
	t.Helper()
	name := nodeName(index)
	as := agentOf(config, name)
	as.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r := counting
		r.next = next
		return r
	})
	_, own, err := clients(as)
	if err != nil {
		t.Fatal(err)
	}
	n := &simNode{
		name: name, random: rand.New(rand.NewPCG(1, uint64(index))),
		cgroups: fstest.MapFS{"memory/memory.stat": {}},
		writer:  &counted{Writer: snapshot.NewWriter(own), of: map[types.UID]int{}},
	}
	objects := make([]any, 0, len(made))
	for j, pod := range made {
		objects = append(objects, pod)
		global := index**podsFlag + j
		n.pods = append(n.pods, simPod{
			behavior: behaviorOf(global), level: 100 * memory.MiB,
			dir: "memory/kubepods/burstable/pod" + string(pod.UID) + "/" + instance(global),
		})
	}
	for j := range n.pods {
		n.count(&n.pods[j])
	}
	set := pods.NewSet()
	if err := set.Replace(objects, "1"); err != nil {
		t.Fatal(err)
	}
	tree, err := cgroup.Open(n.cgroups)
	if err != nil {
		t.Fatal(err)
	}
	n.loop = &scan.Loop{
		Tree: tree, Proc: fstest.MapFS{}, Pods: set, Writer: n.writer, Inspector: filled{make(chan scan.Finding, 64)},
		Node: name, Log: slog.New(slog.DiscardHandler), Metrics: scan.NewMetrics(prometheus.NewRegistry()),
	}
	go n.writer.Run(ctx)
	return n
}

// await waits until the API server knows the policy and the role.
func await(ctx context.Context, t *testing.T, n *simNode, pod *corev1.Pod) {
	t.Helper()
	for range 600 {
		of := &snapshot.Pod{NamespacedName: client.ObjectKeyFromObject(pod), UID: pod.UID}
		n.writer.Writer.Submit(of, &v1alpha1.MemorySnapshotStatus{
			NodeName: n.name, Tier: v1alpha1.AgentSee, CgroupVersion: "v1", ObservedTime: metav1.Now(),
		})
		select {
		case r := <-n.writer.Results():
			if r.Err == nil {
				return
			}
		case <-ctx.Done():
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the policy refuses the agent")
}

// count writes what the kernel counts.
func (n *simNode) count(p *simPod) {
	use := p.level + memory.Bytes(n.random.Int64N(int64(p.level/50)))
	put := func(name, text string) { n.cgroups[name] = &fstest.MapFile{Data: []byte(text)} }
	number := strconv.FormatInt(int64(use), 10)
	pod := filepath.Dir(p.dir)
	for _, dir := range []string{p.dir, pod} {
		put(dir+"/memory.usage_in_bytes", number)
		put(dir+"/memory.limit_in_bytes", strconv.FormatInt(int64(512*memory.MiB), 10))
	}
	put(p.dir+"/memory.stat", "total_rss "+number+"\n")
	put(p.dir+"/memory.oom_control", fmt.Sprintf("under_oom 0\noom_kill %d\n", p.kills))
	put(p.dir+"/cgroup.procs", "")
}

// live lets a step go by.
func (n *simNode) live(since time.Duration) {
	every := func(d time.Duration) bool { return since > 0 && since%d == 0 }
	for i := range n.pods {
		p := &n.pods[i]
		switch {
		case p.behavior == wanders && every(5*time.Minute):
			p.level = memory.Bytes(50+n.random.Int64N(200)) * memory.MiB
		case p.behavior == jumps && every(40*time.Minute):
			p.level /= 2
		case p.behavior == jumps && every(20*time.Minute):
			p.level *= 2
		case p.behavior == killed && every(10*time.Minute):
			p.kills++
		}
		n.count(p)
	}
}

// step lets all nodes tick once, some at a time, and waits until what they handed over is written. Simulated seconds
// pass faster than real ones: together the nodes would send more requests to the API server than in ten real seconds.
func step(ctx context.Context, t *testing.T, nodes []*simNode, since time.Duration, now time.Time) (handed int) {
	t.Helper()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, n := range nodes {
		group.Go(func() error {
			n.live(since)
			n.writer.handed = 0
			n.loop.Tick(ctx, now)
			for begin := time.Now(); len(n.writer.Results()) < n.writer.handed; time.Sleep(time.Millisecond) {
				if time.Since(begin) > time.Minute {
					return fmt.Errorf("%s: %d of %d writes came back", n.name, len(n.writer.Results()), n.writer.handed)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			handed += n.writer.handed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return handed
}

// serversCPU is the processor time of etcd and the API server, which are children of this process.
func serversCPU(t *testing.T) (sum time.Duration) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(text, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, f := range fields[11:13] { // utime, stime, in hundredths of a second
			ticks, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}
