// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/kubelet"
)

// faults are all faults. Their common promises are at the top of docs/evidence/chaos.md.
var faults = []fault{
	{
		name: "api-restarts", within: time.Minute, exits: 3,
		scenario: "the API server is killed three times, 3 s apart, and away for 3 s each",
		promise:  "continues; a leader exits only if it could not renew its lease",
		inject: func(t *testing.T, w *world) {
			for range 3 {
				w.plane.restartAPI(t, 3*time.Second)
				time.Sleep(3 * time.Second)
			}
		},
	},
	{
		name: "api-away", within: 2 * time.Minute, exits: 1,
		scenario: "the API server is away for 45 s, longer than a lease",
		promise:  "the leader exits once; restarted, it waits and logs why",
		inject: func(t *testing.T, w *world) {
			w.plane.restartAPI(t, 45*time.Second)
		},
	},
	{
		name: "history-gone", within: time.Minute, exits: 1,
		scenario: "replicas are cut off for 8 s; etcd is compacted meanwhile (410 Gone)",
		promise:  "lists everything again; kills are found by restart counts",
		inject: func(t *testing.T, w *world) {
			for _, r := range w.replicas {
				r.gate.refuse()
			}
			w.plane.restartAPI(t, time.Second)
			time.Sleep(5 * time.Second)
			w.plane.compact(t)
			for _, r := range w.replicas {
				r.gate.accept()
			}
		},
	},
	{
		name: "etcd-compacted", within: 30 * time.Second,
		scenario: "etcd is compacted and defragmented five times, 2 s apart",
		promise:  "no effect",
		inject: func(t *testing.T, w *world) {
			for range 5 {
				w.plane.compact(t)
				w.plane.callEtcd(t, "/v3/maintenance/defragment", map[string]any{}, nil)
				time.Sleep(2 * time.Second)
			}
		},
	},
	{
		name: "etcd-slow", within: time.Minute, exits: 1,
		scenario: "300 ms more latency between API server and etcd in each direction, for 30 s",
		promise:  "waits; writes nothing twice",
		inject: func(t *testing.T, w *world) {
			w.plane.toEtcd.slow(300 * time.Millisecond)
			time.Sleep(30 * time.Second)
			w.plane.toEtcd.slow(0)
		},
	},
	{
		name: "etcd-restarts", within: time.Minute, exits: 1,
		scenario: "etcd is killed and away for 8 s",
		promise:  "retries its writes",
		inject: func(t *testing.T, w *world) {
			w.plane.etcd.kill()
			time.Sleep(8 * time.Second)
			w.plane.etcd.start(t)
			w.plane.awaitAPI(t, time.Minute)
		},
	},
	{
		name: "watch-gap", within: 30 * time.Second,
		scenario: "for 15 s the leader's watches deliver no pod event and report no error",
		promise:  "finds what it missed with the pod's next event",
		inject: func(t *testing.T, w *world) {
			leader := w.awaitLeader(t)
			leader.gate.gap.Store(true)
			time.Sleep(15 * time.Second)
			leader.gate.gap.Store(false)
			w.load.paused.Store(true)
			time.Sleep(3 * time.Second) // until all containers run again
			for _, one := range w.workloads {
				w.nodes.endAll(one.name)
			}
			if leader.gate.dropped.Load() == 0 {
				t.Error("no event was dropped: the fault did not happen")
			}
		},
	},
	{
		name: "certificate-expired", within: time.Minute,
		scenario: "the webhook's certificate expires and is renewed after 20 s",
		promise:  "pods start without settings meanwhile; the new certificate is used without a restart",
		inject: func(t *testing.T, w *world) {
			w.plane.authority.signed(t, w.certificates, time.Now().Add(-time.Minute))
			w.service.reset() // an open connection does not verify the new certificate
			w.awaitNotInjected(t)
			time.Sleep(20 * time.Second)
			w.plane.authority.signed(t, w.certificates, time.Now().Add(24*time.Hour))
		},
	},
	{
		name: "ca-lost", within: time.Minute,
		scenario: "the webhook configuration trusts another CA for 20 s",
		promise:  "pods start without settings meanwhile",
		inject: func(t *testing.T, w *world) {
			w.trust(t, newAuthority(t).pem)
			w.awaitNotInjected(t)
			time.Sleep(20 * time.Second)
			w.trust(t, w.plane.authority.pem)
		},
	},
	leaderDies("checkpoint", "the checkpoint is written", func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/memorycheckpoints/")
	}),
	leaderDies("recommendation", "the recommendation is written", func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/memoryrecommendations/")
	}),
	leaderDies("event", "an event is written", func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events")
	}),
	leaderDies("resize", "a pod is resized", resizes),
	leaderDies("eviction", "a pod is evicted", func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/eviction")
	}),
	{
		name: "two-leaders", within: time.Minute, exits: 1,
		scenario: "the leader stops for 40 s with a resize in flight; another takes over and resizes further; " +
			"then the first resize arrives",
		promise: "the API server refuses the old resize, which names the size before it; the first leader exits",
		inject:  twoLeaders,
	},
	rescueFault("rescue-lies", "alarms of agents lie for 30 s: another instance, pod or node, impossible amounts, clocks "+
		"that are off by an hour, an alarm that was answered, 20 times",
		"lends nothing for them; one honest alarm among them gets one loan", lyingAlarms),
	rescueFault("rescue-leader-dies", "the leader is killed before a loan is written down, when it is written and not "+
		"sent, and while one is sent; the agent goes on alarming",
		"the next leader finds the loan and gives no further one; the limit is raised", dyingLender),
	rescueFault("rescue-two-leaders", "the leader stops for 40 s with a loan on its way; another takes over and lends; "+
		"then the first loan arrives",
		"the API server refuses the old resize, which names the size before it", twoLenders),
	rescueFault("rescue-agent-dies", "an agent dies after its alarm was answered, and its snapshot is deleted",
		"the loan lasts; nothing more is lent", dyingAgent),
	{
		name: "kubelets-hang", within: time.Minute,
		scenario: "no kubelet answers for 40 s, though connections are accepted",
		promise:  "names the silent nodes; kills are counted anyway",
		inject: func(t *testing.T, w *world) {
			w.answer(hanging)
			w.awaitReport(t, "A node cannot be read")
			time.Sleep(15 * time.Second)
			w.answer(truthful)
		},
	},
	{
		name: "kubelets-lie", within: time.Minute,
		scenario: "for 30 s kubelets report 4 EiB in use, pods of other nodes, times a year ahead, invalid kill " +
			"counters",
		promise: "counts no kill more; no limit exceeds limit.max",
		inject: func(t *testing.T, w *world) {
			w.answer(lying)
			time.Sleep(30 * time.Second)
			w.answer(truthful)
		},
	},
	{
		name: "kubelets-flood", within: time.Minute,
		scenario: "every kubelet answers with 64 MiB or more, for 30 s",
		promise:  "stops reading at 8 MiB (counters: 64 MiB) and reports it",
		inject: func(t *testing.T, w *world) {
			w.answer(endless)
			w.awaitReport(t, "the response exceeds")
			time.Sleep(15 * time.Second)
			w.answer(truthful)
		},
	},
	clock("clock-ahead", "ahead", 24*time.Hour),
	clock("clock-behind", "behind", -24*time.Hour),
	{
		name: "split-silent", within: 2 * time.Minute, exits: 1,
		scenario: "every packet between leader and API server is lost for 60 s",
		promise:  "the other replica takes over; the old leader exits",
		inject: func(t *testing.T, w *world) {
			leader := w.awaitLeader(t)
			leader.gate.freeze()
			time.Sleep(60 * time.Second)
			leader.gate.thaw()
		},
	},
	{
		name: "split-both", within: 2 * time.Minute, exits: 2,
		scenario: "connections of both replicas to the API server are refused for 30 s",
		promise:  "continues; kills are counted",
		inject: func(t *testing.T, w *world) {
			for _, r := range w.replicas {
				r.gate.refuse()
			}
			time.Sleep(30 * time.Second)
			for _, r := range w.replicas {
				r.gate.accept()
			}
		},
	},
	{
		name: "crds-removed", within: 2 * time.Minute, exits: 1,
		scenario: "memfit's CRDs are deleted with all objects; CRDs and profiles return after 20 s",
		promise:  "starts from what pod statuses show; counts exactly from then on",
		inject:   removeCRDs,
	},
	{
		name: "namespace-deleted", within: 2 * time.Minute, exits: 0,
		scenario: "a namespace is deleted and created again while its first pod is watched with a lower limit",
		promise:  "forgets the old workloads; treats the new ones as new",
		inject:   deleteNamespace,
	},
	{
		name: "thousand-pods", within: 2 * time.Minute, exits: 0,
		scenario: "1,000 pods: 300 containers are killed as fast as possible, the leader after 150",
		promise:  "one checkpoint holds it; every kill is counted",
		workloads: []workload{{
			name: "crowd", replicas: 1000, runtime: v1alpha1.RuntimeNative, mode: v1alpha1.SizingInPlace,
			limit: 128 * memory.MiB, cause: kubelet.KernelOOM,
		}},
		inject: func(t *testing.T, w *world) {
			for i := range 300 {
				if i == 150 {
					w.awaitLeader(t).kill()
				}
				w.nodes.endOne("crowd")
				time.Sleep(20 * time.Millisecond)
			}
		},
	},
	{
		name: "checkpoint-refused", within: 2 * time.Minute, exits: 0,
		scenario: "etcd refuses requests above 24 KiB; the checkpoint of 1,000 pods is larger; then 1.5 MiB again",
		promise:  "an Event names the reason; everything is counted once writes succeed",
		workloads: []workload{{
			name: "crowd", replicas: 1000, runtime: v1alpha1.RuntimeNative, mode: v1alpha1.SizingRecommend,
			limit: 128 * memory.MiB, cause: kubelet.KernelOOM,
		}},
		inject: func(t *testing.T, w *world) {
			usual := w.plane.etcd.args
			restart := func(flags ...string) {
				w.plane.etcd.kill()
				w.plane.etcd.args = slices.Concat(usual, flags)
				w.plane.etcd.start(t)
				w.plane.awaitAPI(t, time.Minute)
			}
			restart("--max-request-bytes=24576")
			for range 1500 {
				w.nodes.endOne("crowd")
				time.Sleep(20 * time.Millisecond)
			}
			w.awaitReport(t, "request is too large")
			time.Sleep(10 * time.Second)
			restart()
		},
	},
	{
		name: "disk-full", within: 2 * time.Minute, exits: 1,
		scenario: "etcd is full (NOSPACE) for 30 s: reads work, writes fail",
		promise:  "the leader exits once; replicas that wait for the lease keep running",
		etcd:     []string{"--quota-backend-bytes=16777216"},
		inject: func(t *testing.T, w *world) {
			full := false
			for i := 0; !full; i++ {
				full = w.plane.put(fmt.Sprintf("/chaos/%d", i), 1<<20) != nil
			}
			time.Sleep(30 * time.Second)
			w.plane.empty(t, "/chaos/")
		},
	},
}

func removeCRDs(t *testing.T, w *world) {
	for _, crd := range crds(t) {
		if err := w.client.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(20 * time.Second)
	w.load.paused.Store(true)
	for _, crd := range crds(t) {
		within(t, time.Minute, crd.Name+" to be created again", func() error {
			return client.IgnoreAlreadyExists(w.client.Create(t.Context(), crd))
		})
	}
	w.createProfiles(t)
	// memfit first counts the kills that the pods' statuses show. Later kills are added to these.
	began, last := time.Now(), int64(-1)
	within(t, 2*time.Minute, "stable counts after the restart from pod statuses", func() error {
		var all int64
		for _, one := range w.workloads {
			n, err := w.count(one.name)
			if err != nil {
				last = -1
				return fmt.Errorf("%s: %w", one.name, err)
			}
			all += n
		}
		if all != last {
			last, began = all, time.Now()
		}
		if time.Since(began) < 5*time.Second {
			return errors.New("counts still change")
		}
		return nil
	})
	for _, one := range w.workloads {
		n, err := w.count(one.name)
		if err != nil {
			t.Fatal(err)
		}
		w.before[one.name] = w.nodes.kills(one.name) - n
	}
	w.load.paused.Store(false)
	time.Sleep(10 * time.Second)
}

func deleteNamespace(t *testing.T, w *world) {
	// Kills have raised the limits: a lower limit.max makes memfit lower them, and watch the first pod.
	within(t, time.Minute, "limits to be raised", func() error {
		if w.nodes.highestOf("web") <= 128*memory.MiB {
			return errors.New("none is raised")
		}
		return nil
	})
	w.load.paused.Store(true)
	var profile v1alpha1.MemoryProfile
	within(t, time.Minute, "limit.max to be lowered", func() error {
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "web"}, &profile); err != nil {
			return err
		}
		profile.Spec.Sizing.Limit.Max = v1alpha1.NewMemoryQuantity((128 * memory.MiB).Quantity())
		return w.client.Update(t.Context(), &profile)
	})
	w.awaitReport(t, v1alpha1.ReasonWatching)
	w.nodes.deleting(true)
	if err := w.client.Delete(t.Context(), build.Namespace(shop)); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Minute, "the namespace to be deleted", func() error {
		err := w.client.Get(t.Context(), client.ObjectKey{Name: shop}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it still exists: %w", err)
	})
	for _, one := range w.workloads {
		w.before[one.name] = w.nodes.kills(one.name)
	}
	create(t, w.client, build.Namespace(shop))
	w.nodes.deleting(false)
	w.createProfiles(t)
	within(t, time.Minute, "pods to be injected", w.injects)
	w.createWorkloads(t)
	w.load.paused.Store(false)
	time.Sleep(10 * time.Second)
}

// leaderDies kills the leader twice: while a request has been sent but not processed, and while it has been processed
// but not answered. The first request arrives anyway.
func leaderDies(name, what string, match func(*http.Request) bool) fault {
	return fault{
		name: "leader-dies-" + name, within: time.Minute,
		scenario: "the leader is killed while " + what,
		promise:  "done exactly once",
		inject: func(t *testing.T, w *world) {
			if name == "eviction" {
				// A kill is unobservable if its pod is deleted before a leader has read the pod's status.
				w.load.excluded.Store(new("moved"))
				defer w.load.excluded.Store(nil)
			}
			about := map[string]string{"eviction": "moved", "resize": "web"}[name]
			for _, after := range []bool{false, true} {
				leader := w.awaitLeader(t)
				h := leader.gate.next(after, match)
				began := time.Now()
				var lastEnd time.Time
				for {
					if about != "" && time.Since(lastEnd) > 12*time.Second && w.nodes.endOne(about) {
						lastEnd = time.Now()
					}
					select {
					case <-h.reached:
					case <-time.After(time.Second):
						if time.Since(began) > 90*time.Second {
							leader.gate.resume(h)
							t.Fatalf("the leader sent no request: %s", what)
						}
						continue
					}
					break
				}
				leader.kill()
				time.Sleep(time.Second)
				leader.gate.resume(h)
				<-h.done
			}
		},
	}
}

func resizes(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/resize")
}

// twoLeaders delays a resize of the old leader until after the new leader has resized pods.
func twoLeaders(t *testing.T, w *world) {
	old := w.awaitLeader(t)
	h := old.gate.next(false, resizes)
	select {
	case <-h.reached:
	case <-time.After(90 * time.Second):
		t.Fatal("the leader sent no resize")
	}
	old.pause()
	within(t, time.Minute, "the other replica to lead", func() error {
		if !w.other(old).leads() {
			return errors.New("it does not lead yet")
		}
		return nil
	})
	time.Sleep(25 * time.Second) // it resizes more than once, because containers are killed meanwhile
	old.resume()
	old.gate.resume(h)
	<-h.done
	if h.status == http.StatusOK {
		t.Logf("the API server accepted the old leader's resize: the pod still had the size before it")
	}
}

// clock returns a fault in which the clock of a node jumps by a day, and back.
func clock(name, way string, by time.Duration) fault {
	return fault{
		name: name, within: time.Minute,
		scenario: "the clock of one node of three is a day " + way + " for 20 s",
		promise:  "counts by instances, not by times",
		inject: func(_ *testing.T, w *world) {
			turn := func(by time.Duration) {
				w.nodes.set(func(_ map[string]answer, ahead map[string]time.Duration) { ahead[nodeName(0)] = by })
			}
			turn(by)
			time.Sleep(20 * time.Second)
			turn(0)
		},
	}
}

func (w *world) answer(how answer) {
	w.nodes.set(func(answers map[string]answer, _ map[string]time.Duration) {
		for i := range nodeCount {
			answers[nodeName(i)] = how
		}
	})
}

// trust sets the CA that the API server trusts for memfit's webhook.
func (w *world) trust(t *testing.T, ca []byte) {
	t.Helper()
	within(t, time.Minute, "the CA to be written", func() error {
		var pods admissionregistrationv1.MutatingWebhookConfiguration
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: "mutating-webhook-configuration"}, &pods); err != nil {
			return err
		}
		for i := range pods.Webhooks {
			pods.Webhooks[i].ClientConfig.CABundle = bytes.Clone(ca)
		}
		return w.client.Update(t.Context(), &pods)
	})
}

// awaitNotInjected waits until the API server no longer reaches the webhook.
func (w *world) awaitNotInjected(t *testing.T) {
	t.Helper()
	within(t, 30*time.Second, "the fault to happen", func() error {
		if w.injects() == nil {
			return errors.New("pods are still injected")
		}
		w.service.reset()
		return nil
	})
}
