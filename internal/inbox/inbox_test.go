// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workload"
)

var (
	rosterWeb = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	rosterJob = memory.WorkloadRef{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "job"}
)

func look(container string, restarts int32) oom.Observation {
	return oom.Observation{
		Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "uid-1", Container: container},
		Restarts:  restarts,
	}
}

func rosterWith(pods ...string) *Inbox {
	r := NewInbox()
	for _, name := range pods {
		r.AddPod(types.UID("uid-"+name), types.NamespacedName{Namespace: "shop", Name: "web-" + name}, rosterWeb)
	}
	return r
}

// TestMailIsBounded: an informer that runs without a reconciler costs a bounded amount of memory, and the first and
// the newest observations survive, which carry the sum of what happened in between.
func TestMailIsBounded(t *testing.T) {
	r := rosterWith("1")
	for restarts := range int32(1000) {
		r.Observe(rosterWeb, []oom.Observation{look("app", restarts), look("app", restarts), look("proxy", 0)})
	}
	r.Govern(rosterWeb, map[types.UID]Placement{"uid-1": {"node-1", []string{"app"}}}, profile.Key{})
	for i := range 3 * workload.MaxSamples {
		s := memory.Sample{
			Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "uid-1", Container: "app"},
			Time:      time.Unix(int64(i), 0),
		}
		r.Sampled("node-1", []memory.Sample{s}, "kubelet")
	}
	mail, pods := r.Pending(rosterWeb)
	r.Done(rosterWeb)
	if len(pods) != 1 {
		t.Errorf("%d pods, want 1", len(pods))
	}
	var app []int32
	for _, o := range mail.Observations {
		if o.Container.Container == "app" {
			app = append(app, o.Restarts)
		}
	}
	if len(app) != workload.MaxObservations || app[0] != 0 || app[len(app)-1] != 999 {
		t.Errorf("observations of app with restarts %v, want %d, from 0 to 999", app, workload.MaxObservations)
	}
	if n := len(mail.Observations) - len(app); n != 1 {
		t.Errorf("%d equal observations of proxy, want 1", n)
	}
	if n := len(mail.Samples); n > workload.MaxSamples || mail.Samples[n-1].Time.Unix() != 3*workload.MaxSamples-1 {
		t.Errorf("%d samples up to %s, want at most %d up to the newest", n, mail.Samples[n-1].Time, workload.MaxSamples)
	}
	if mail, _ := r.Pending(rosterWeb); len(mail.Observations)+len(mail.Samples) != 0 {
		t.Error("events that were acknowledged are still there")
	}
}

// TestEventsStayUntilTheyAreAcknowledged: what failed is tried again, before what came in meanwhile, and once.
func TestEventsStayUntilTheyAreAcknowledged(t *testing.T) {
	r := rosterWith("1")
	r.Observe(rosterWeb, []oom.Observation{look("app", 1)})
	given, _ := r.Pending(rosterWeb)
	given.Observations[0] = oom.Observation{} // what a reconcile does with its copy is its own business
	r.Observe(rosterWeb, []oom.Observation{look("app", 2)})
	again, _ := r.Pending(rosterWeb)
	if len(again.Observations) != 2 || again.Observations[0].Restarts != 1 || again.Observations[1].Restarts != 2 {
		t.Errorf("got %+v, want restarts 1 and then 2", again.Observations)
	}
	r.Observe(rosterWeb, []oom.Observation{look("app", 3)})
	r.Done(rosterWeb)
	if rest, _ := r.Pending(rosterWeb); len(rest.Observations) != 1 || rest.Observations[0].Restarts != 3 {
		t.Errorf("got %+v, want only what nobody has been given yet: restarts 3", rest.Observations)
	}
	r.Done(rosterWeb)
	r.RemovePod(rosterWeb, "", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}, nil, nil)
	if all := r.Workloads(); len(all) != 0 {
		t.Errorf("%v is kept without pods and events", all)
	}
}

// TestLateOwnersMovePods: a pod whose owner becomes known late changes its workload, and leaves nothing behind.
func TestLateOwnersMovePods(t *testing.T) {
	r := rosterWith("1")
	r.AddPod("uid-1", types.NamespacedName{Namespace: "shop", Name: "web-1"}, rosterJob)
	if w, _ := r.Workload("uid-1"); w != rosterJob {
		t.Errorf("the pod belongs to %s, want %s", w, rosterJob)
	}
	if all := r.Workloads(); len(all) != 1 || all[0] != rosterJob {
		t.Errorf("workloads %v, want only %s", all, rosterJob)
	}
}

// TestSamplesOfOthersAreDropped: only governed pods have a history, and only from samples of their own node, once for
// each container.
func TestSamplesOfOthersAreDropped(t *testing.T) {
	r := rosterWith("1", "2")
	r.Govern(rosterWeb, map[types.UID]Placement{"uid-1": {"node-1", []string{"app"}}}, profile.Key{})
	sample := func(uid types.UID, pod string) memory.Sample {
		return memory.Sample{
			Container: memory.ContainerRef{Namespace: "shop", Pod: pod, UID: uid, Container: "app"}, RSS: memory.MiB,
		}
	}
	samples := []memory.Sample{
		sample("uid-1", "web-1"), sample("uid-1", "web-1"), sample("uid-1", "web-of-another-name"), sample("uid-2", "web-2"),
		sample("uid-3", "web-3"),
	}
	for i := range 100 { // a node that invents containers of its own pod
		invented := sample("uid-1", "web-1")
		invented.Container.Container = fmt.Sprintf("invented-%d", i)
		samples = append(samples, invented)
		counted := []memory.KillCounter{{Container: invented.Container, Count: 3}}
		if touched := r.Counted("node-1", counted); len(touched) != 0 {
			t.Errorf("kills were counted in %s, which the pod does not have", invented.Container.Container)
		}
	}
	if touched := r.Sampled("node-2", samples, "kubelet"); len(touched) != 0 {
		t.Errorf("another node spoke for the pod: touched %v", touched)
	}
	counted := []memory.KillCounter{{Container: samples[0].Container, Count: 3}}
	if touched := r.Counted("node-2", counted); len(touched) != 0 {
		t.Errorf("another node counted kills in the pod: touched %v", touched)
	}
	if touched := r.Sampled("node-1", samples, "kubelet"); len(touched) != 1 {
		t.Errorf("touched %v, want one workload", touched)
	}
	mail, _ := r.Pending(rosterWeb)
	if len(mail.Samples) != 1 || mail.Samples[0].Container.UID != "uid-1" || mail.Source != "kubelet" {
		t.Errorf("samples %+v from %q, want the one of uid-1 from kubelet", mail.Samples, mail.Source)
	}
	if nodes := r.GovernedNodes(); len(nodes) != 1 || nodes["node-1"] != 1 {
		t.Errorf("governed nodes %v, want node-1 with one pod", nodes)
	}
}

// TestANodeSpeaksOnceForEachContainer: whatever the number of containers, and once more in its next reading.
func TestANodeSpeaksOnceForEachContainer(t *testing.T) {
	r := rosterWith("1", "2")
	var containers []string
	for i := range 100 {
		containers = append(containers, fmt.Sprintf("c-%d", i))
	}
	r.Govern(rosterWeb, map[types.UID]Placement{
		"uid-1": {"node-1", containers}, "uid-2": {"node-1", containers[:1]},
	}, profile.Key{})
	var samples []memory.Sample
	for range 2 {
		for i := range containers {
			samples = append(samples, memory.Sample{
				Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "uid-1", Container: containers[i]},
				RSS:       memory.Bytes(len(samples)),
			})
		}
		samples = append(samples, memory.Sample{
			Container: memory.ContainerRef{Namespace: "shop", Pod: "web-2", UID: "uid-2", Container: containers[0]},
		})
	}
	for range 2 {
		r.Sampled("node-1", samples, "kubelet")
		mail, _ := r.Pending(rosterWeb)
		if len(mail.Samples) != len(containers)+1 {
			t.Fatalf("%d samples of %d containers were kept", len(mail.Samples), len(containers)+1)
		}
		for i := range containers {
			if got := mail.Samples[i]; got.Container.Container != containers[i] || got.RSS != memory.Bytes(i) {
				t.Errorf("sample %d is %+v, want the first of %s", i, got, containers[i])
			}
		}
		r.Done(rosterWeb)
	}
}

// TestWhatIsKeptOfAPod: until it is deleted or moves to another workload.
func TestWhatIsKeptOfAPod(t *testing.T) {
	r, name := rosterWith("1"), types.NamespacedName{Namespace: "shop", Name: "web-1"}
	if k := r.Kept("uid-1"); k != (policy.Remembered{}) {
		t.Errorf("%+v is kept of a pod that was not resolved", k)
	}
	kept := policy.Remembered{
		Workload: rosterWeb, Owner: "web", Controller: "set",
		Profile: profile.Key{Kind: "MemoryProfile", Namespace: "shop", Name: "web"},
	}
	r.Keep("uid-1", name, kept)
	if diff := cmp.Diff(kept, r.Kept("uid-1")); diff != "" || r.Owner(rosterWeb) != "web" {
		t.Errorf("kept (-want +got):\n%s\nowner %q", diff, r.Owner(rosterWeb))
	}
	r.AddPod("uid-1", name, rosterJob)
	if k := r.Kept("uid-1"); k != (policy.Remembered{}) || r.Owner(rosterJob) != "" {
		t.Errorf("%+v is kept of its earlier workload", k)
	}
}

// TestARemovedPodLeavesNothing: also one that was never added.
func TestARemovedPodLeavesNothing(t *testing.T) {
	r := rosterWith("1")
	for _, uid := range []types.UID{"uid-1", "uid-2"} {
		r.RemovePod(rosterWeb, "", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}, nil, nil)
	}
	if all := r.Workloads(); len(all) != 0 {
		t.Errorf("%v is kept without pods and events", all)
	}
}

// BenchmarkObserve is what the informer pays for one event of a pod of a workload with 10,000 pods that was not
// reconciled for a while, as at a start.
func BenchmarkObserve(b *testing.B) {
	r := rosterWith("1")
	for i := range 10_000 {
		o := look("app", 0)
		o.Container.Pod, o.Container.UID = fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("uid-%d", i))
		r.Observe(rosterWeb, []oom.Observation{o})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r.Observe(rosterWeb, []oom.Observation{look("app", int32(i))})
	}
}

// TestAChangedProfileConcernsItsOwnWorkloads: one tenant's edits cause no work for the workloads of others.
func TestAChangedProfileConcernsItsOwnWorkloads(t *testing.T) {
	r := NewInbox()
	governed := map[string]profile.Key{
		"shop/web": {Kind: "MemoryProfile", Namespace: "shop", Name: "web"},
		"shop/api": {Kind: "MemoryProfile", Namespace: "shop", Name: "api"}, "shop/none": {},
		"other/web": {Kind: "ClusterMemoryProfile", Namespace: "", Name: "all"}, "other/none": {},
	}
	for name, key := range governed {
		namespace, deployment, _ := strings.Cut(name, "/")
		ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: deployment}
		r.AddPod(types.UID(name), types.NamespacedName{Namespace: namespace, Name: deployment}, ref)
		r.Govern(ref, nil, key)
	}
	change := func(namespace, name string, chooses bool) policy.Change {
		kind := "MemoryProfile"
		if namespace == "" {
			kind = "ClusterMemoryProfile"
		}
		return policy.Change{Key: profile.Key{Kind: kind, Namespace: namespace, Name: name}, SelectionChanged: chooses}
	}
	for what, tc := range map[string]struct {
		changes []policy.Change
		want    []string
	}{
		"an edit of its settings": {[]policy.Change{change("shop", "web", false)}, []string{"shop/web"}},
		"of two": {
			[]policy.Change{change("shop", "web", false), change("", "all", false)}, []string{"other/web", "shop/web"},
		},
		"of one that governs nobody": {[]policy.Change{change("evil", "web", false)}, nil},
		"another selector": {
			[]policy.Change{change("shop", "web", true)}, []string{"shop/api", "shop/none", "shop/web"},
		},
		"a new profile in a namespace of evil": {[]policy.Change{change("evil", "web", true)}, nil},
		"a new profile of the cluster": {
			[]policy.Change{change("", "new", true)}, []string{"other/none", "other/web", "shop/api", "shop/none", "shop/web"},
		},
	} {
		var got []string
		for _, ref := range r.Concerned(tc.changes) {
			got = append(got, ref.Namespace+"/"+ref.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s concerns %v, want %v", what, got, tc.want)
		}
	}
}

// TestGovernIsAboutItsOwnPods: what a workload reports of a pod that has left it does not count, and neither does what
// it reported before.
func TestGovernIsAboutItsOwnPods(t *testing.T) {
	r := rosterWith("1", "2")
	api := rosterWeb
	api.Name = "api"
	at := func(node string) Placement { return Placement{node, []string{"app"}} }
	r.AddPod("uid-3", types.NamespacedName{Namespace: "shop", Name: "api-3"}, api)
	r.Govern(api, map[types.UID]Placement{"uid-3": at("node-3")}, profile.Key{})
	r.Govern(rosterWeb, map[types.UID]Placement{
		"uid-1": at("node-1"), "uid-2": at("node-2"), "uid-3": at("node-1"), "uid-4": at("node-4"),
	}, profile.Key{})
	if diff := cmp.Diff(map[string]int{"node-1": 1, "node-2": 1, "node-3": 1}, r.GovernedNodes()); diff != "" {
		t.Errorf("nodes of governed pods (-want +got):\n%s", diff)
	}
	r.Govern(rosterWeb, map[types.UID]Placement{"uid-2": at("node-2")}, profile.Key{})
	if diff := cmp.Diff(map[string]int{"node-2": 1, "node-3": 1}, r.GovernedNodes()); diff != "" {
		t.Errorf("nodes of governed pods (-want +got):\n%s", diff)
	}
}

// BenchmarkSampled is what one node's reading of thirty pods of three workloads costs until the workloads have taken
// it.
func BenchmarkSampled(b *testing.B) {
	r := NewInbox()
	var samples []memory.Sample
	var refs []memory.WorkloadRef
	for w := range 3 {
		ref := rosterWeb
		ref.Name = fmt.Sprintf("web-%d", w)
		refs = append(refs, ref)
		placed := map[types.UID]Placement{}
		for p := range 10 {
			uid, name := types.UID(fmt.Sprintf("uid-%d-%d", w, p)), fmt.Sprintf("web-%d-%d", w, p)
			r.AddPod(uid, types.NamespacedName{Namespace: "shop", Name: name}, ref)
			placed[uid] = Placement{"node-1", []string{"app"}}
			samples = append(samples, memory.Sample{
				Container: memory.ContainerRef{Namespace: "shop", Pod: name, UID: uid, Container: "app"}, RSS: memory.MiB,
			})
		}
		r.Govern(ref, placed, profile.Key{})
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Sampled("node-1", samples, "kubelet")
		for _, ref := range refs {
			r.Pending(ref)
			r.Done(ref)
		}
	}
}

// TestNodeClasses: a class of nodes is known as long as it has pods or events.
func TestNodeClasses(t *testing.T) {
	r := NewInbox()
	log := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "log"}
	class := func(name string) memory.WorkloadRef {
		of := log
		of.NodeClass = name
		return of
	}
	add := func(pod string, of memory.WorkloadRef) {
		r.AddPod(types.UID(pod), types.NamespacedName{Namespace: "shop", Name: pod}, of)
		r.Govern(of, map[types.UID]Placement{types.UID(pod): {Node: "on-" + pod}}, profile.Key{})
	}
	add("whole", log)
	add("s1", class("small"))
	add("l1", class("large"))
	add("web", rosterWeb)
	expect := func(when string, nodes map[memory.WorkloadRef]int, classes ...memory.WorkloadRef) {
		t.Helper()
		got := r.NodeClasses(log)
		slices.SortFunc(got, func(a, b memory.WorkloadRef) int { return strings.Compare(a.NodeClass, b.NodeClass) })
		if !slices.Equal(got, classes) {
			t.Errorf("%s: %v, want %v", when, got, classes)
		}
		for of, want := range nodes {
			if got := r.NodesOfOthers(of); got != want {
				t.Errorf("%s: %s has %d nodes of others, want %d", when, of, got, want)
			}
		}
	}
	expect("at first", map[memory.WorkloadRef]int{log: 2, class("small"): 2, class("new"): 3, rosterWeb: 0},
		class("large"), class("small"))
	if got := append(r.NodeClasses(class("small")), r.NodeClasses(rosterWeb)...); len(got) != 0 {
		t.Errorf("a class and a Deployment have classes %v", got)
	}
	add("l1", class("small")) // its node has another label now
	expect("moved", map[memory.WorkloadRef]int{log: 1, class("large"): 2}, class("small"))
	r.RemovePod(log, "", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "whole"}}, nil, nil)
	expect("without the others", map[memory.WorkloadRef]int{log: 1, class("small"): 0}, class("small"))
	for _, pod := range []types.UID{"s1", "l1"} {
		r.RemovePod(class("small"), "", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod}}, nil, nil)
	}
	expect("at the end", map[memory.WorkloadRef]int{log: 0})
}

// of100000 is an inbox with 100,000 workloads, of which one is a DaemonSet on two classes of nodes.
func of100000() (*Inbox, memory.WorkloadRef) {
	r := NewInbox()
	log := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "kube-system", Name: "log"}
	for _, class := range []string{"m5.large", "m5.xlarge"} {
		of := log
		of.NodeClass = class
		r.AddPod(types.UID(class), types.NamespacedName{Namespace: "kube-system", Name: "log-" + class}, of)
	}
	for i := range 100_000 {
		name := fmt.Sprintf("web-%d", i)
		r.AddPod(types.UID(name), types.NamespacedName{Namespace: "shop", Name: name}, memory.WorkloadRef{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name,
		})
	}
	return r, log
}

// BenchmarkNodeClasses finds the classes of a DaemonSet among 100,000 workloads, as each of its Enqueue does.
func BenchmarkNodeClasses(b *testing.B) {
	r, log := of100000()
	for b.Loop() {
		if got := r.NodeClasses(log); len(got) != 2 {
			b.Fatal(got)
		}
	}
}

// BenchmarkNodesOfOthers counts the nodes of the other classes of a DaemonSet among 100,000 workloads.
func BenchmarkNodesOfOthers(b *testing.B) {
	r, log := of100000()
	for b.Loop() {
		if got := r.NodesOfOthers(log); got != 0 {
			b.Fatal(got)
		}
	}
}
