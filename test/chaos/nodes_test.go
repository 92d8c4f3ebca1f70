// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/kubelet"
)

const nodeCount = 3

func nodeName(i int) string    { return fmt.Sprintf("node-%d", i+1) }
func nodeAddress(i int) string { return fmt.Sprintf("127.77.0.%d", i+1) }

// answer is what a node's kubelet does when it is asked for /stats/summary or /metrics/cadvisor.
type answer int

const (
	truthful answer = iota
	// hanging: it takes the request and reports nothing.
	hanging
	// lying: impossible numbers, pods of other nodes, times in the future.
	lying
	// endless: 64 MiB of JSON.
	endless
)

// nodes are the scheduler and the kubelets of all nodes: they place pods, run them, end their containers, resize them,
// and write statuses. What they know does not depend on the API server, which may be away.
type nodes struct {
	client client.Client
	port   int

	mu sync.Mutex
	// of has a test kubelet for each workload, because causes are chosen by workload.
	of   map[string]*kubelet.Kubelet
	pods map[types.UID]*placed
	// answers and ahead are by node: how stats are answered, and how wrong the clock is.
	answers map[string]answer
	ahead   map[string]time.Duration
	// spec is how each workload behaves.
	spec map[string]workload
	// asked counts requests for stats, by node.
	asked map[string]int
	rng   *rand.Rand

	// settled: the last round found nothing to write.
	settled bool
	// led is when a replica of memfit was last seen to lead, and missed are the kills, by workload, that no leader can
	// know of: their pods were deleted before one led that could have read of them.
	led    func() time.Time
	missed map[string]int64

	disturbance
	served chan struct{} // closed when the test is over: what hangs ends
}

// placed is a pod on a node.
type placed struct {
	*kubelet.Pod
	workload, namespace, node string
	restartAt                 time.Time
	leaving                   time.Time
	infeasible                bool
	wasReady                  bool
	// request is the container's, which the test kubelet does not know.
	request resource.Quantity
	// killed is how many kills there were, reported how many of them the API server was told of, and when.
	killed, reported int64
	reports          []report
}

// report is a status that told the API server of so many more kills.
type report struct {
	kills int64
	at    time.Time
}

// disturbance counts what memfit does to pods that serve.
type disturbance struct {
	// evicted are pods that memfit took away, by workload; owed is how many of them have no ready successor yet.
	evicted, owed map[string]int
	// beyond is how often one more was taken away than maxUnavailable.
	beyond int
	// ours: pods that go now are taken away by the test.
	ours    bool
	resized map[string]int
	// highest is the highest limit that a pod of each workload ever had.
	highest map[string]memory.Bytes
}

func newNodes(t *testing.T, c client.Client, pair tls.Certificate, workloads []workload) *nodes {
	t.Helper()
	n := &nodes{
		client: c, port: freePort(t), of: map[string]*kubelet.Kubelet{}, pods: map[types.UID]*placed{},
		answers: map[string]answer{}, ahead: map[string]time.Duration{}, spec: map[string]workload{},
		asked: map[string]int{}, rng: rand.New(rand.NewPCG(1, 2)), served: make(chan struct{}),
		missed: map[string]int64{}, led: time.Now,
		disturbance: disturbance{
			evicted: map[string]int{}, owed: map[string]int{}, resized: map[string]int{},
			highest: map[string]memory.Bytes{},
		},
	}
	for _, w := range workloads {
		n.spec[w.name] = w
		n.of[w.name] = kubelet.New(time.Now(), func(int) int { return int(w.cause) })
	}
	n.serve(t, pair)
	return n
}

// register tells the API server of the nodes.
func (n *nodes) register(ctx context.Context) error {
	for i := range nodeCount {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)},
			Status: corev1.NodeStatus{
				Addresses:   []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress(i)}},
				Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Gi")},
				DaemonEndpoints: corev1.NodeDaemonEndpoints{
					KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(n.port)},
				},
			},
		}
		if err := n.client.Create(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// run keeps pods going until ctx ends.
func (n *nodes) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := 200 * time.Millisecond
		var pods corev1.PodList
		began := time.Now()
		if err := n.client.List(ctx, &pods); err == nil {
			n.sync(ctx, pods.Items)
		}
		// With a thousand pods a list takes a while, and this is not what is tested.
		pause = max(pause, 2*time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// sync does one round.
func (n *nodes) sync(ctx context.Context, pods []corev1.Pod) {
	there := map[types.UID]bool{}
	var work []func(context.Context)
	n.mu.Lock()
	for i := range pods {
		pod := &pods[i]
		there[pod.UID] = true
		if do := n.pod(pod); do != nil {
			work = append(work, do)
		}
	}
	for uid, p := range n.pods {
		if !there[uid] && !p.Deleted {
			p.Deleted = true
			n.left(p)
		}
	}
	n.settled = len(work) == 0
	n.mu.Unlock()
	var all sync.WaitGroup
	room := make(chan struct{}, 8)
	for _, do := range work {
		room <- struct{}{}
		all.Go(func() {
			do(ctx)
			<-room
		})
	}
	all.Wait()
}

// pod does what is next for one pod, and returns what is to be written.
func (n *nodes) pod(pod *corev1.Pod) func(context.Context) {
	if pod.Spec.NodeName == "" {
		return n.bind(pod)
	}
	p := n.pods[pod.UID]
	if p == nil {
		if p = n.adopt(pod); p == nil {
			return nil
		}
	}
	leaving := pod.DeletionTimestamp != nil
	if leaving && p.leaving.IsZero() {
		p.leaving = time.Now()
		n.left(p)
	}
	k, now := n.of[p.workload], n.now(p.node)
	k.Now = now
	if !p.Running() && !leaving && !now.Before(p.restartAt) {
		k.Start(p.Pod)
	}
	if !leaving {
		n.resize(pod, p)
	}
	status := n.status(pod, p)
	ready := p.Running()
	if ready && !p.wasReady {
		p.wasReady = true
		if n.owed[p.workload] > 0 {
			n.owed[p.workload]--
		}
	}
	if equality.Semantic.DeepEqual(status.ContainerStatuses, pod.Status.ContainerStatuses) &&
		sameConditions(status.Conditions, pod.Status.Conditions) {
		if leaving {
			return n.leave(pod, p)
		}
		return nil
	}
	write := pod.DeepCopy()
	write.Status = status
	killed := p.killed
	return func(ctx context.Context) {
		if n.client.Status().Update(ctx, write) == nil { // else the next round tries again
			n.mu.Lock()
			defer n.mu.Unlock()
			p.reports = append(p.reports, report{killed - p.reported, time.Now()})
			p.reported = killed
		}
	}
}

func sameConditions(a, b []corev1.PodCondition) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.PodCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
}

func (n *nodes) now(node string) time.Time {
	return time.Now().Add(n.ahead[node]).UTC().Truncate(time.Second)
}

func (n *nodes) bind(pod *corev1.Pod) func(context.Context) {
	to := nodeName(n.rng.IntN(nodeCount))
	pod = pod.DeepCopy()
	return func(ctx context.Context) {
		_ = n.client.SubResource("binding").Create(ctx, pod,
			&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: to}})
	}
}

// adopt begins to run a pod; nil: it is none of the workloads'.
func (n *nodes) adopt(pod *corev1.Pod) *placed {
	name := pod.Labels["app"]
	k, known := n.of[name]
	if !known {
		return nil
	}
	c := &pod.Spec.Containers[0]
	k.Now = n.now(pod.Spec.NodeName)
	p := &placed{
		Pod: k.Create(pod.Name, memory.FromQuantity(*c.Resources.Limits.Memory())), workload: name,
		namespace: pod.Namespace, node: pod.Spec.NodeName, request: *c.Resources.Requests.Memory(),
	}
	p.UID, p.Created, p.Cause = pod.UID, pod.CreationTimestamp.Time, n.spec[name].cause
	n.pods[pod.UID] = p
	n.highest[name] = max(n.highest[name], p.Limit)
	return p
}

// leave ends a pod a second after a user asked for it, when its last status is written.
func (n *nodes) leave(pod *corev1.Pod, p *placed) func(context.Context) {
	if time.Since(p.leaving) < time.Second {
		return nil
	}
	uid := pod.UID
	pod = pod.DeepCopy()
	return func(ctx context.Context) {
		if n.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid}) != nil {
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, r := range p.reports {
			if r.at.After(n.led()) {
				n.missed[p.workload] += r.kills
			}
		}
	}
}

// left notes that a pod goes, which is memfit's doing unless the test declares it as its own.
func (n *nodes) left(p *placed) {
	if n.ours || !p.leaving.IsZero() && p.Deleted {
		return
	}
	n.evicted[p.workload]++
	if n.owed[p.workload]++; n.owed[p.workload] > 1 {
		n.beyond++
	}
}

// resize carries out what the pod's spec asks for, or reports that it never will.
func (n *nodes) resize(pod *corev1.Pod, p *placed) {
	c := &pod.Spec.Containers[0]
	limit, request := memory.FromQuantity(*c.Resources.Limits.Memory()), *c.Resources.Requests.Memory()
	p.infeasible = false
	if limit == p.Limit && request.Cmp(p.request) == 0 {
		return
	}
	if n.spec[p.workload].infeasible {
		p.infeasible = true
		return
	}
	if !p.Running() {
		return // a kubelet that does as it should waits for the container
	}
	p.Limit, p.request = limit, request
	p.Resizes++
	n.resized[p.workload]++
	n.highest[p.workload] = max(n.highest[p.workload], limit)
}

// status is what the API server is told.
func (n *nodes) status(pod *corev1.Pod, p *placed) corev1.PodStatus {
	shown := n.of[p.workload].Shown(p.Pod)
	status := shown.Status
	status.ObservedGeneration, status.QOSClass = pod.Generation, pod.Status.QOSClass
	status.StartTime = &pod.CreationTimestamp
	s := &status.ContainerStatuses[0]
	s.Resources = &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(int64(p.Limit), resource.BinarySI),
		},
		Requests: corev1.ResourceList{corev1.ResourceMemory: p.request},
	}
	s.Ready, s.Started, s.Image, s.ImageID = p.Running(), new(p.Running()), "registry.example/app:1", "sha256:0"
	ready := corev1.ConditionFalse
	if p.Running() {
		ready = corev1.ConditionTrue
	}
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if p.infeasible {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
			Message: "made up: this kubelet resizes nothing",
		})
	}
	// What a quantity looks like when it comes back from the API server is how it is compared.
	data, err := json.Marshal(status)
	if err != nil {
		return status
	}
	var back corev1.PodStatus
	if json.Unmarshal(data, &back) != nil {
		return status
	}
	return back
}

// strike ends the container of one pod of the workload that runs, has run for a second and is not on its way out, and
// whose last end the API server knows; false: there is none.
func (n *nodes) strike(workload string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	able := n.able(workload)
	if len(able) == 0 {
		return false
	}
	n.end(able[n.rng.IntN(len(able))])
	return true
}

// strikeAll does so to each of them.
func (n *nodes) strikeAll(workload string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.able(workload) {
		n.end(p)
	}
}

func (n *nodes) end(p *placed) {
	k, before := n.of[p.workload], n.all(p.workload)
	k.Now = n.now(p.node)
	k.End(p.Pod, p.Cause)
	p.killed += n.all(p.workload) - before
	p.restartAt = k.Now.Add(time.Second)
}

// able are the pods of a workload whose containers can be ended.
func (n *nodes) able(workload string) []*placed {
	var able []*placed
	for _, uid := range slices.Sorted(maps.Keys(n.pods)) {
		p := n.pods[uid]
		if p.workload == workload && p.Running() && !p.Deleted && p.leaving.IsZero() && p.wasReady &&
			n.now(p.node).Sub(p.Started) >= time.Second {
			able = append(able, p)
		}
	}
	return able
}

// kills is how many OOM kills there were in a workload.
func (n *nodes) kills(workload string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all(workload)
}

func (n *nodes) all(workload string) (all int64) {
	for _, count := range n.of[workload].Kills {
		all += count
	}
	return all
}

// unknown is how many of them no one can know of.
func (n *nodes) unknown(workload string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.missed[workload]
}

// written reports whether the API server knows all that happened on the nodes.
func (n *nodes) written() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.settled
}

// deleting reports whether pods that go are taken away by the test.
func (n *nodes) deleting(ours bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ours = ours
}

// running is how many pods of a workload run.
func (n *nodes) running(workload string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, p := range n.pods {
		if p.workload == workload && p.wasReady && !p.Deleted && p.leaving.IsZero() {
			count++
		}
	}
	return count
}

// highestOf is the highest limit that a pod of a workload ever had.
func (n *nodes) highestOf(workload string) memory.Bytes {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.highest[workload]
}

// set changes how nodes answer, and their clocks.
func (n *nodes) set(change func(answers map[string]answer, ahead map[string]time.Duration)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n.answers, n.ahead)
}

// serve answers for all nodes, each on its own loopback address.
func (n *nodes) serve(t *testing.T, pair tls.Certificate) {
	t.Helper()
	for i := range nodeCount {
		name := nodeName(i)
		at := net.JoinHostPort(nodeAddress(i), strconv.Itoa(n.port))
		listener, err := net.Listen("tcp", at) //nolint:noctx // closed with the test
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{
			ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.stats(name, w, r) }),
		}
		go func() {
			_ = server.Serve(
				tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}),
			)
		}()
		t.Cleanup(func() { _ = server.Close() })
	}
	t.Cleanup(func() { close(n.served) })
}

// stats answers one request as the node's kubelet does now.
func (n *nodes) stats(node string, w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	how := n.answers[node]
	n.asked[node]++
	n.mu.Unlock()
	switch {
	case how == hanging:
		select {
		case <-r.Context().Done():
		case <-n.served:
		}
		return
	case how == endless:
		n.flood(w, r.URL.Path)
		return
	case r.URL.Path == "/stats/summary":
		_ = json.NewEncoder(w).Encode(n.summary(node, how))
	case r.URL.Path == "/metrics/cadvisor":
		n.counters(node, how, w)
	default:
		http.NotFound(w, r)
	}
}

// flood writes 64 MiB and a bit of what could be an answer.
func (n *nodes) flood(w io.Writer, path string) {
	line := []byte(`{"podRef":{"name":"p","namespace":"shop","uid":"0"},"containers":[]},` + "\n")
	if path == "/stats/summary" {
		_, _ = io.WriteString(w, `{"node":{"nodeName":"n"},"pods":[`)
	} else {
		line = []byte(`container_memory_rss{container="app",id="/kubepods/x",name="x",namespace="shop",pod="p"} 1` + "\n")
	}
	for sent := 0; sent < 64<<20+len(line); sent += len(line) {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// summary is what a kubelet reports about its pods' memory: half of the limit is in use.
func (n *nodes) summary(node string, how answer) stats.Summary {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := metav1.NewTime(n.now(node))
	s := stats.Summary{Node: stats.NodeStats{NodeName: node}, Pods: []stats.PodStats{}}
	for uid, p := range n.pods {
		if p.Deleted || !p.Running() || p.node != node && how != lying {
			continue
		}
		rss := uint64(n.spec[p.workload].limit / 2)
		at := now
		if how == lying {
			rss, at = 1<<62, metav1.NewTime(now.Add(365*24*time.Hour))
		}
		working := rss
		s.Pods = append(s.Pods, stats.PodStats{
			PodRef:    stats.PodReference{Namespace: p.namespace, Name: p.Name, UID: string(uid)},
			StartTime: metav1.NewTime(p.Created),
			Containers: []stats.ContainerStats{{
				Name: kubelet.Container, StartTime: metav1.NewTime(p.Started),
				Memory: &stats.MemoryStats{Time: at, RSSBytes: &rss, WorkingSetBytes: &working, UsageBytes: &working},
			}},
		})
	}
	return s
}

// counters is what cAdvisor says of memory, and of kills in containers that live on: none; of one that lies, a number
// that grows.
func (n *nodes) counters(node string, how answer, w io.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, p := range n.pods {
		if p.Deleted || !p.Running() || p.node != node {
			continue
		}
		count := "0"
		if how == lying {
			count = []string{"NaN", "-5", "1e300", "+Inf"}[n.rng.IntN(4)]
		}
		instance := fmt.Sprintf("%s-%d", uid, p.Restarts)
		labels := fmt.Sprintf(`{container=%q,id="/kubepods/pod%s/%s",image="app",name=%q,namespace=%q,pod=%q}`,
			kubelet.Container, uid, instance, instance, p.namespace, p.Name)
		_, _ = fmt.Fprintf(w, "container_oom_events_total%s %s\n", labels, count)
		rss, at := n.spec[p.workload].limit/2, n.now(node).UnixMilli()
		if how == lying {
			rss = 1 << 62
		}
		_, _ = fmt.Fprintf(w, "container_memory_rss%[1]s %[2]d %[3]d\ncontainer_memory_usage_bytes%[1]s %[2]d %[3]d\n"+
			"container_memory_total_active_file_bytes%[1]s 0 %[3]d\ncontainer_memory_total_inactive_file_bytes%[1]s 0 %[3]d\n",
			labels, rss, at)
	}
}
