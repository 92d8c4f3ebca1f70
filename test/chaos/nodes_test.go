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

// answer is how a node's kubelet responds to requests for /stats/summary and /metrics/cadvisor.
type answer int

const (
	truthful answer = iota
	// hanging: it accepts the request and never responds.
	hanging
	// lying: impossible numbers, pods of other nodes, times in the future.
	lying
	// endless: a response of more than 64 MiB.
	endless
)

// nodes implements the scheduler and the kubelets of all nodes: it places and runs pods, ends their containers, resizes
// them, and writes statuses. It keeps its own state, because the API server may be down.
type nodes struct {
	client client.Client
	port   int

	mu sync.Mutex
	// kubelets has a test kubelet for each workload, because the cause depends on the workload.
	kubelets map[string]*kubelet.Kubelet
	pods     map[types.UID]*placed
	// answers and ahead are by node: its response, and by how much its clock is ahead.
	answers map[string]answer
	ahead   map[string]time.Duration
	// spec is how each workload behaves.
	spec map[string]workload
	// requests counts requests for stats, by node.
	requests map[string]int
	rng      *rand.Rand

	// settled: the last round had nothing to write.
	settled bool
	// lastLed returns when a replica of memfit last led.
	lastLed func() time.Time
	// missed counts, by workload, the kills in pods that were deleted before a leader could read their status.
	missed map[string]int64

	disturbance
	served chan struct{} // closed at the end of the test, to end hanging requests
}

// placed is a pod on a node.
type placed struct {
	*kubelet.Pod
	workload, namespace, node string
	restartAt                 time.Time
	leaving                   time.Time
	infeasible                bool
	wasReady                  bool
	// request is the container's memory request, which the test kubelet does not have.
	request resource.Quantity
	// killed counts the kills, reported those in statuses that the API server has, with their times in reports.
	killed, reported int64
	reports          []report
}

// report is a written status with additional kills.
type report struct {
	kills int64
	at    time.Time
}

// disturbance counts memfit's disruptions of serving pods.
type disturbance struct {
	// evicted counts pods that memfit evicted, by workload, and unreplaced those of them without a ready replacement.
	evicted, unreplaced map[string]int
	// beyond counts the evictions beyond maxUnavailable.
	beyond int
	// testDeletes: the test itself deletes pods now.
	testDeletes bool
	resized     map[string]int
	// highest is the highest limit that a pod ever had, by workload.
	highest map[string]memory.Bytes
}

func newNodes(t *testing.T, c client.Client, pair tls.Certificate, workloads []workload) *nodes {
	t.Helper()
	n := &nodes{
		client: c, port: freePort(t), kubelets: map[string]*kubelet.Kubelet{}, pods: map[types.UID]*placed{},
		answers: map[string]answer{}, ahead: map[string]time.Duration{}, spec: map[string]workload{},
		requests: map[string]int{}, rng: rand.New(rand.NewPCG(1, 2)), served: make(chan struct{}),
		missed: map[string]int64{}, lastLed: time.Now,
		disturbance: disturbance{
			evicted: map[string]int{}, unreplaced: map[string]int{}, resized: map[string]int{},
			highest: map[string]memory.Bytes{},
		},
	}
	for _, w := range workloads {
		n.spec[w.name] = w
		n.kubelets[w.name] = kubelet.New(time.Now(), func(int) int { return int(w.cause) })
	}
	n.serve(t, pair)
	return n
}

// register creates the nodes in the API server.
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

// run runs pods until ctx ends.
func (n *nodes) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := 200 * time.Millisecond
		var pods corev1.PodList
		began := time.Now()
		if err := n.client.List(ctx, &pods); err == nil {
			n.sync(ctx, pods.Items)
		}
		// With a thousand pods a list takes long, and must not take most of the CPU.
		pause = max(pause, 2*time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// sync processes all pods once.
func (n *nodes) sync(ctx context.Context, pods []corev1.Pod) {
	listed := map[types.UID]bool{}
	var work []func(context.Context)
	n.mu.Lock()
	for i := range pods {
		pod := &pods[i]
		listed[pod.UID] = true
		if do := n.pod(pod); do != nil {
			work = append(work, do)
		}
	}
	for uid, p := range n.pods {
		if !listed[uid] && !p.Deleted {
			p.Deleted = true
			n.left(p)
		}
	}
	n.settled = len(work) == 0
	n.mu.Unlock()
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, do := range work {
		slots <- struct{}{}
		all.Go(func() {
			do(ctx)
			<-slots
		})
	}
	all.Wait()
}

// pod does the next step of one pod, and returns the write that it needs, or nil.
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
	k, now := n.kubelets[p.workload], n.now(p.node)
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
		if n.unreplaced[p.workload] > 0 {
			n.unreplaced[p.workload]--
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
		if n.client.Status().Update(ctx, write) == nil { // otherwise the next round retries
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

// adopt starts to run a pod, or returns nil if it belongs to no workload.
func (n *nodes) adopt(pod *corev1.Pod) *placed {
	name := pod.Labels["app"]
	k, known := n.kubelets[name]
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

// leave deletes a pod a second after its deletion was requested, when its last status is written.
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
			if r.at.After(n.lastLed()) {
				n.missed[p.workload] += r.kills
			}
		}
	}
}

// left counts a deleted pod as evicted by memfit, unless the test itself deletes pods.
func (n *nodes) left(p *placed) {
	if n.testDeletes || !p.leaving.IsZero() && p.Deleted {
		return
	}
	n.evicted[p.workload]++
	if n.unreplaced[p.workload]++; n.unreplaced[p.workload] > 1 {
		n.beyond++
	}
}

// resize applies the resources of the pod's spec, or marks the resize as infeasible.
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
		return // a real kubelet waits until the container runs, too
	}
	p.Limit, p.request = limit, request
	p.Resizes++
	n.resized[p.workload]++
	n.highest[p.workload] = max(n.highest[p.workload], limit)
}

// status returns the pod's status for the API server.
func (n *nodes) status(pod *corev1.Pod, p *placed) corev1.PodStatus {
	shown := n.kubelets[p.workload].Shown(p.Pod)
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
			Message: "synthetic: this kubelet does not resize",
		})
	}
	// Quantities are compared as the API server returns them, so that they are encoded and decoded once.
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

// endOne ends the container of one candidate of the workload, and returns false if there is none.
func (n *nodes) endOne(workload string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods := n.candidates(workload)
	if len(pods) == 0 {
		return false
	}
	n.end(pods[n.rng.IntN(len(pods))])
	return true
}

// endAll ends the containers of all candidates.
func (n *nodes) endAll(workload string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.candidates(workload) {
		n.end(p)
	}
}

func (n *nodes) end(p *placed) {
	k, before := n.kubelets[p.workload], n.killsSoFar(p.workload)
	k.Now = n.now(p.node)
	k.End(p.Pod, p.Cause)
	p.killed += n.killsSoFar(p.workload) - before
	p.restartAt = k.Now.Add(time.Second)
}

// candidates returns the pods of a workload whose containers may be ended: ready and running for at least a second.
func (n *nodes) candidates(workload string) []*placed {
	var found []*placed
	for _, uid := range slices.Sorted(maps.Keys(n.pods)) {
		p := n.pods[uid]
		if p.workload == workload && p.Running() && !p.Deleted && p.leaving.IsZero() && p.wasReady &&
			n.now(p.node).Sub(p.Started) >= time.Second {
			found = append(found, p)
		}
	}
	return found
}

// kills returns the number of OOM kills in a workload.
func (n *nodes) kills(workload string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.killsSoFar(workload)
}

func (n *nodes) killsSoFar(workload string) (all int64) {
	for _, count := range n.kubelets[workload].Kills {
		all += count
	}
	return all
}

// unknown returns how many of the kills are unobservable.
func (n *nodes) unknown(workload string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.missed[workload]
}

// written reports whether the API server has the current status of all pods.
func (n *nodes) written() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.settled
}

// deleting sets whether the test itself deletes pods.
func (n *nodes) deleting(testDeletes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.testDeletes = testDeletes
}

// running returns the number of running pods of a workload.
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

// highestOf returns the highest limit that a pod of a workload ever had.
func (n *nodes) highestOf(workload string) memory.Bytes {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.highest[workload]
}

// set changes the responses and clocks of nodes.
func (n *nodes) set(change func(answers map[string]answer, ahead map[string]time.Duration)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n.answers, n.ahead)
}

// serve serves the kubelet API of all nodes, each on its own loopback address.
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

// stats answers one request as the node's current answer specifies.
func (n *nodes) stats(node string, w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	how := n.answers[node]
	n.requests[node]++
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

// flood writes slightly more than 64 MiB of a valid-looking response.
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

// summary returns a kubelet's report of its pods' memory: half of the workload's limit.
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

// counters writes cAdvisor's metrics of memory and of kills in running containers: none, or an invalid number if the
// kubelet lies.
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
