// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// look is one moment at which memfit sees pods.
type look struct {
	at   float64
	pods []podMaker
	peak map[string]memory.Bytes
}

// killLine is what the stories below compare: restart-proof and short.
type killLine struct {
	Pod, Kind string
	At        string
	Limit     string
	Sure      memory.Confidence
}

func lines(kills []memory.OOMKill) []killLine {
	var out []killLine
	for _, k := range kills {
		out = append(out, killLine{k.Container.Pod, string(k.Kind), k.Time.Format("15:04"), k.Limit.String(), k.Confidence})
	}
	return out
}

func (lk look) observations() []Observation {
	var obs []Observation
	for _, p := range lk.pods {
		obs = append(obs, Observe(p.pod)...)
	}
	return obs
}

func oom(instance int32, started, finished float64) *corev1.ContainerStateTerminated {
	return end(instance, "OOMKilled", 137, started, finished)
}

// TestLedgerStories tells what the ledger makes of a sequence of looks. Every story is told a second time with the
// operator killed after every look (all that survives is what is stored), and a third time with every look taken twice:
// the kills must be the same.
func TestLedgerStories(t *testing.T) {
	pod := func(cs corev1.ContainerStatus) podMaker { return makePod("web-1", "u1").container("app", "256Mi", cs) }
	edited := func(m podMaker) podMaker { return m.edit(func(p *corev1.Pod) { p.Generation = 2 }) }
	restartsOnResize := func(m podMaker) podMaker {
		return m.edit(func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
			}
		})
	}
	run := func(created float64, limit string, cs corev1.ContainerStatus) podMaker {
		uid := fmt.Sprintf("run-%g", created)
		return makePod(uid, types.UID(uid)).created(created).container("app", limit, effective(cs, limit))
	}
	seen := map[string]memory.Bytes{"app": 250 * memory.MiB}

	for name, tc := range map[string]struct {
		looks []look
		want  []killLine
	}{
		// Seen on a real node: a step's pods are created with the raised limit, while one that was created before is resized
		// and dies before the resize reaches it.
		"killed when younger pods have more": {
			looks: []look{
				{at: 1, pods: []podMaker{run(0, "64Mi", running(0, 0.1))}},
				{at: 3, pods: []podMaker{run(2, "256Mi", running(0, 2.1))}},
				{at: 4, pods: []podMaker{
					run(2, "256Mi", running(0, 2.1)), edited(run(1, "256Mi", corev1.ContainerStatus{
						ContainerID: id(0), State: corev1.ContainerState{Terminated: oom(0, 3.1, 3.2)},
					})),
				}},
			},
			want: []killLine{{"run-1", "MainProcess", "08:03", "64Mi", "High"}},
		},
		"killed when of the pods of one second some have more": {
			looks: []look{
				{at: 1, pods: []podMaker{run(0, "64Mi", running(0, 0.1))}},
				{at: 3, pods: []podMaker{run(2, "256Mi", running(0, 2.1)), run(2.001, "64Mi", running(0, 2.1))}},
				{at: 4, pods: []podMaker{edited(run(1, "256Mi", corev1.ContainerStatus{
					ContainerID: id(0), State: corev1.ContainerState{Terminated: oom(0, 3.1, 3.2)},
				}))}},
			},
			want: []killLine{{"run-1", "MainProcess", "08:03", "64Mi", "High"}},
		},
		"one kill, seen in every form the kubelet gives it": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{60, []podMaker{pod(ended(0, oom(0, 0, 60)))}, seen},
				{60.1, []podMaker{pod(crashLoop(0, oom(0, 0, 60)))}, seen},
				{61, []podMaker{pod(after(running(1, 61), oom(0, 0, 60)))}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "09:00", "256Mi", "High"}},
		},
		"two kills between two looks are two": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{pod(after(running(2, 19), oom(1, 10, 18)))}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:10", "256Mi", "Medium"}, {"web-1", "MainProcess", "08:18", "256Mi", "High"},
			},
		},
		"two kills between two looks, both still visible": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{pod(after(ended(1, oom(1, 10, 18)), oom(0, 0, 9)))}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:09", "256Mi", "High"}, {"web-1", "MainProcess", "08:18", "256Mi", "High"},
			},
		},
		"a crash loop of five, looked at after the first and the fifth": {
			looks: []look{
				{1, []podMaker{pod(crashLoop(0, oom(0, 0, 1)))}, seen},
				{30, []podMaker{pod(crashLoop(4, oom(4, 20, 29)))}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:01", "256Mi", "High"},
				{"web-1", "MainProcess", "08:20", "256Mi", "Medium"}, {"web-1", "MainProcess", "08:20", "256Mi", "Medium"},
				{"web-1", "MainProcess", "08:20", "256Mi", "Medium"}, {"web-1", "MainProcess", "08:29", "256Mi", "High"},
			},
		},
		"restarts that were no kills stay none": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{pod(after(running(3, 19), end(2, "Error", 1, 10, 18)))}, seen},
				{40, []podMaker{pod(after(running(4, 31), oom(3, 19, 30)))}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:30", "256Mi", "High"}},
		},
		"a child's kill says nothing about the restarts before it": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{pod(after(running(3, 19), end(2, "OOMKilled", 143, 10, 18)))}, seen},
			},
			want: []killLine{{"web-1", "ChildProcess", "08:18", "256Mi", "High"}},
		},
		"a pod that restarted five times before memfit came: the visible kill counts, the others nobody saw": {
			looks: []look{
				{100, []podMaker{pod(after(running(5, 90), oom(4, 70, 89)))}, seen},
				{120, []podMaker{pod(after(running(6, 111), oom(5, 90, 110)))}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "09:29", "256Mi", "High"}, {"web-1", "MainProcess", "09:50", "256Mi", "High"},
			},
		},
		"a pod older than memfit that had not restarted: from then on nothing is missed": {
			looks: []look{
				{100, []podMaker{pod(running(0, 0))}, seen},
				{130, []podMaker{pod(after(running(2, 121), oom(1, 110, 120)))}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "09:50", "256Mi", "Medium"}, {"web-1", "MainProcess", "10:00", "256Mi", "High"},
			},
		},
		"a pod born after memfit came, first seen after two kills: both happened under its eyes": {
			looks: []look{
				{0, nil, nil},
				{20, []podMaker{pod(after(running(2, 19), oom(1, 10, 18))).created(5)}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:10", "256Mi", "Medium"}, {"web-1", "MainProcess", "08:18", "256Mi", "High"},
			},
		},
		"a sidecar that restarted before memfit came is not made younger by its quiet neighbor": {
			looks: []look{
				{100, []podMaker{pod(running(0, 0)).container("proxy", "64Mi", after(running(3, 90), oom(2, 70, 89)))}, nil},
			},
			want: []killLine{{"web-1", "MainProcess", "09:29", "64Mi", "High"}},
		},
		"a StatefulSet's pod comes back with the same name and starts counting anew": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{pod(after(running(1, 11), oom(0, 0, 10)))}, seen},
				{40, []podMaker{
					makePod("web-1", "u2").created(30).container("app", "256Mi", after(running(1, 39), oom(0, 30, 38))),
				}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:10", "256Mi", "High"}, {"web-1", "MainProcess", "08:38", "256Mi", "High"},
			},
		},
		"an old look after a newer one (relist) changes nothing": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{40, []podMaker{pod(after(running(2, 31), oom(1, 20, 30)))}, seen},
				{41, []podMaker{pod(after(running(1, 20), oom(0, 0, 19)))}, seen},
				{42, []podMaker{pod(running(0, 0))}, seen},
				{43, []podMaker{pod(after(running(2, 31), oom(1, 20, 30)))}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:20", "256Mi", "Medium"}, {"web-1", "MainProcess", "08:30", "256Mi", "High"},
			},
		},
		"the kubelet lost its containers and counts restarts anew": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{pod(after(running(4, 19), end(3, "Error", 1, 10, 18)))}, seen},
				{40, []podMaker{pod(running(0, 30))}, seen},
				{60, []podMaker{pod(crashLoop(0, &corev1.ContainerStateTerminated{
					ContainerID: "containerd://new", Reason: "OOMKilled", ExitCode: 137, StartedAt: stamp(30),
					FinishedAt: stamp(59)}))}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:59", "256Mi", "High"}},
		},
		"the limit is the one it died under, not the one of the answer": {
			looks: []look{
				{0, []podMaker{pod(effective(running(0, 0), "256Mi"))}, seen},
				{20, []podMaker{
					edited(makePod("web-1", "u1").container("app", "384Mi", effective(after(running(1, 19), oom(0, 0, 18)), "384Mi"))),
				}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:18", "256Mi", "High"}},
		},
		"the same for a pod born after memfit came": {
			looks: []look{
				{0, nil, nil},
				{6, []podMaker{pod(effective(running(0, 5), "256Mi")).created(5)}, seen},
				{20, []podMaker{
					edited(
						makePod("web-1", "u1").created(5).container(
							"app", "384Mi", effective(after(running(1, 19), oom(0, 5, 18)), "384Mi"),
						),
					),
				}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:18", "256Mi", "High"}},
		},
		"resized twice, killed after the first": {
			looks: []look{
				{0, []podMaker{pod(effective(running(0, 0), "256Mi"))}, seen},
				{5, []podMaker{edited(makePod("web-1", "u1").container("app", "320Mi", effective(running(0, 0), "320Mi")))}, seen},
				{20, []podMaker{
					edited(makePod("web-1", "u1").container("app", "512Mi", effective(after(running(1, 19), oom(0, 0, 18)), "512Mi"))),
				}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:18", "320Mi", "High"}},
		},
		"a resize pending in the spec is not effective": {
			looks: []look{
				{0, []podMaker{edited(makePod("web-1", "u1").container("app", "1Gi", effective(running(0, 0), "256Mi")))}, seen},
				{20, []podMaker{
					edited(makePod("web-1", "u1").container("app", "1Gi", effective(crashLoop(0, oom(0, 0, 18)), "256Mi"))),
				}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:18", "256Mi", "High"}},
		},
		"a restart made to resize, then a kill: one, and nobody saw the new limit effective": {
			looks: []look{
				{0, []podMaker{restartsOnResize(pod(effective(running(0, 0), "256Mi")))}, seen},
				{20, []podMaker{
					restartsOnResize(edited(
						makePod("web-1", "u1").container("app", "384Mi", effective(after(running(2, 19), oom(1, 10, 18)), "384Mi")),
					)),
				}, seen},
			},
			want: []killLine{{"web-1", "MainProcess", "08:18", "256Mi", "High"}},
		},
		"resized in place without a restart while nobody looked, and killed twice: both": {
			looks: []look{
				{0, []podMaker{pod(effective(running(0, 0), "256Mi"))}, seen},
				{20, []podMaker{
					edited(
						makePod("web-1", "u1").container("app", "384Mi", effective(after(running(2, 19), oom(1, 10, 18)), "384Mi")),
					),
				}, seen},
			},
			want: []killLine{
				{"web-1", "MainProcess", "08:10", "256Mi", "Medium"}, {"web-1", "MainProcess", "08:18", "256Mi", "High"},
			},
		},
		"a new pod with a new limit is taken at its word": {
			looks: []look{
				{0, []podMaker{pod(running(0, 0))}, seen},
				{20, []podMaker{
					makePod("web-2", "u2").created(10).container("app", "512Mi", after(running(1, 19), oom(0, 10, 18))),
				}, seen},
			},
			want: []killLine{{"web-2", "MainProcess", "08:18", "512Mi", "High"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for telling, opts := range map[string]struct{ crash, twice bool }{
				"plain": {}, "operator killed after every look": {crash: true}, "every look twice": {twice: true},
			} {
				l := &Ledger{}
				var got []memory.OOMKill
				for _, lk := range tc.looks {
					now := at(lk.at)
					got = append(got, l.Update(lk.observations(), peaks(lk.peak), now)...)
					if opts.twice {
						got = append(got, l.Update(lk.observations(), peaks(lk.peak), now)...)
					}
					if opts.crash {
						l = reborn(t, l)
					}
				}
				if diff := cmp.Diff(tc.want, lines(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", telling, diff)
				}
				if diff := cmp.Diff(lines(got), lines(l.All())); diff != "" {
					t.Errorf("%s: on file is not what was told (-told +on file):\n%s", telling, diff)
				}
			}
		})
	}
}

// reborn is the ledger as the next process finds it.
func reborn(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	data := stored(t, l)
	next := &Ledger{}
	if err := next.UnmarshalBinary(data); err != nil {
		t.Fatalf("%v\n%q", err, data)
	}
	if again := stored(t, next); !bytes.Equal(again, data) {
		t.Fatalf("not the same after a round trip:\n%q\n%q", data, again)
	}
	return next
}

func stored(t *testing.T, l *Ledger) []byte {
	t.Helper()
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestAFullHeapIsADeathAtTheLimitItsCapIsFor: the pod was raised in place, and its process starts with the heap cap
// for 256Mi each time.
func TestAFullHeapIsADeathAtTheLimitItsCapIsFor(t *testing.T) {
	var l Ledger
	pod := makePod("web-1", "u1").container("app", "256Mi", running(0, 0))
	l.Update(Observe(pod.pod), nil, at(0))
	abort := end(2, "Error", 134, 20, 30)
	pod = makePod("web-1", "u1").container("app", "512Mi", after(effective(running(3, 30), "512Mi"), abort))
	pod.pod.Generation = 2
	obs := Observe(pod.pod)
	obs[0].Runtime, obs[0].CapFor = "NodeJS", 256*memory.MiB
	kills := l.Update(obs, nil, at(31))
	if len(kills) != 3 {
		t.Fatalf("%d kills, want 3: %+v", len(kills), kills)
	}
	for _, k := range kills {
		if k.Kind != memory.OOMHeapAbort || k.Limit != 256*memory.MiB || k.Requested != 0 || !k.Proven {
			t.Errorf("got %+v, want an abort at 256Mi", k)
		}
	}
	if last, found := l.Last(kills[0].Container); !found || !last.Time.Equal(kills[2].Time) {
		t.Errorf("the last is %+v", last)
	}
}

func TestFirstSightSaysWhatIsNotCounted(t *testing.T) {
	var l Ledger
	kills := l.Update(
		Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(5, 90), oom(4, 70, 89))).pod), nil, at(100),
	)
	const want = "restarts before memfit first saw the pod are not counted: 4"
	if len(kills) != 1 || !strings.Contains(kills[0].Why, want) {
		t.Errorf("got %+v", kills)
	}
}

func TestHiddenKillSaysHowItIsKnown(t *testing.T) {
	var l Ledger
	m := makePod("web-1", "u1")
	l.Update(Observe(m.container("app", "256Mi", running(0, 0)).pod), nil, at(0))
	kills := l.Update(Observe(m.container("app", "256Mi", after(running(2, 19), oom(1, 10, 18))).pod), nil, at(20))
	want := "restart 0, inferred from restartCount, which rose by 2 between two observations; " +
		"restart 1 was OOMKilled, exit 137"
	if len(kills) != 2 || kills[0].Why != want {
		t.Errorf("got %+v, want %q first", kills, want)
	}
}

func TestForget(t *testing.T) {
	killed := Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(2, 19), oom(1, 10, 18))).pod)
	l := &Ledger{}
	l.Update(Observe(makePod("web-1", "u1").container("app", "256Mi", running(0, 0)).pod), nil, at(0))
	l.Update(killed, nil, at(20))
	l.Forget(nil, at(30))
	if got := l.Update(killed, nil, at(31)); len(got) != 0 {
		t.Errorf("a late event about a pod just deleted counted again: %+v", got)
	}
	l.Forget(nil, at(91))
	if len(l.pods) != 0 {
		t.Errorf("%d cursors left an hour after the last pod went", len(l.pods))
	}
	if got := l.Update(killed, nil, at(92)); len(got) != 0 {
		t.Errorf("an even later event counted again, although the kill is on file: %+v", got)
	}
	if l.Total("app") != 2 {
		t.Errorf("Total is %d after forgetting, want 2", l.Total("app"))
	}
}

func TestForgetKeepsTheLiving(t *testing.T) {
	l := &Ledger{}
	obs := Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(1, 19), oom(0, 10, 18))).pod)
	l.Update(obs, nil, at(20))
	for minute := 30.0; minute < 300; minute += 30 {
		l.Forget(map[types.UID]bool{"u1": true}, at(minute))
	}
	if len(l.pods) != 1 {
		t.Error("the cursor of a living pod is gone")
	}
}

func TestDamagedLedgerIsRefusedAndNothingLost(t *testing.T) {
	var l Ledger
	l.Update(
		Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(1, 19), oom(0, 10, 18))).pod), nil, at(20),
	)
	for name, data := range map[string]string{
		"empty": "", "cut off": "\x09{}", "no JSON": "\x02{]", "the cursors end early": "\x02{}\x01",
	} {
		if err := l.UnmarshalBinary([]byte(data)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if l.Total("app") != 1 {
		t.Error("the refused ledger replaced what was there")
	}
}

// TestAStoredKillMayTurnOutToBeOfAnotherKind: the kill of a child that is on file was the end of the container.
func TestAStoredKillMayTurnOutToBeOfAnotherKind(t *testing.T) {
	for name, reads := range map[string]bool{"of an agent": false, "of the kernel's counter": true} {
		l := &Ledger{}
		l.begin(at(0))
		l.names["app"] = &nameData{Kills: []memory.OOMKill{{
			Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"},
			Kind:      memory.OOMChildProcess, Time: at(21).Add(-time.Second), AgentOnly: !reads,
		}}}
		if reads {
			c := l.add(keyOf("u1"), "app")
			c.next, c.count, c.counter = 1, 1, true
			c.counterID, c.counterOf, c.countedAt = instanceOf(id(1)), 1, at(21)
			l.bytes += c.cost() - cursorCost
		}
		if l = reborn(t, l); l.Count("app", memory.OOMChildProcess) != 1 {
			t.Errorf("%s: read as %v", name, l.Kills("app"))
		}
		died := makePod("web-1", "u1").container("app", "256Mi", crashLoop(1, oom(1, 20, 21))).pod
		if kills := l.Update(Observe(died), nil, at(21)); len(kills) != 0 {
			t.Errorf("%s: counted twice: %+v", name, kills)
		}
		if l.Count("app", memory.OOMChildProcess) != 0 || l.Count("app", memory.OOMMainProcess) != 1 || l.Total("app") != 1 {
			t.Errorf("%s: counted as %v", name, l.Kills("app"))
		}
	}
}

// TestBounds runs a workload whose pods die and are replaced for ever.
func TestBounds(t *testing.T) {
	l := &Ledger{}
	l.Update(nil, nil, at(0))
	const pods = 3000
	for i := range pods {
		minute := float64(i)
		m := makePod(fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("%036d", i))).created(minute)
		l.Update(Observe(m.container("app", "256Mi", ended(0, oom(0, minute, minute+0.5))).pod), nil, at(minute+0.6))
		l.Forget(map[types.UID]bool{}, at(minute+0.7))
	}
	if got := l.Total("app"); got != pods {
		t.Errorf("Total is %d, want %d", got, pods)
	}
	if got := len(l.Kills("app")); got != KillsKept {
		t.Errorf("%d kills in detail, want %d", got, KillsKept)
	}
	data := stored(t, l)
	if len(data) > 20_000 {
		t.Errorf("%d bytes stored after %d kills", len(data), pods)
	}
	t.Logf("%d cursors, %d bytes", len(l.pods), len(data))
}

func TestPodsWithoutRestartsCostNothing(t *testing.T) {
	l := &Ledger{}
	l.Update(nil, nil, at(0))
	for i := range 1000 {
		m := makePod(fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("%036d", i))).created(1)
		l.Update(Observe(m.container("app", "256Mi", running(0, 1)).pod), nil, at(2))
	}
	if len(l.pods) != 0 {
		t.Errorf("%d cursors for pods that never restarted", len(l.pods))
	}
}

// TestARolloutDoesNotKeepRewritingTheLedger: old pods with the old limit and new ones with the new are looked at in
// turn, also where the last old ones and the first new ones were created in the same second.
func TestARolloutDoesNotKeepRewritingTheLedger(t *testing.T) {
	l := &Ledger{}
	l.Update(nil, nil, at(0))
	pods := [][]Observation{
		Observe(makePod("web-1", "u1").created(1).container("app", "256Mi", running(0, 1)).pod),
		Observe(makePod("web-2", "u2").created(9).container("app", "512Mi", running(0, 9)).pod),
		Observe(makePod("web-3", "u3").created(9).container("app", "256Mi", running(0, 9)).pod),
	}
	var before []byte
	for minute := 10.0; minute < 20; minute++ {
		for _, pod := range pods {
			l.Update(pod, nil, at(minute))
			if after := stored(t, l); minute > 10 && !bytes.Equal(after, before) {
				t.Fatalf("nothing happened, and the ledger changed:\n%q\n%q", before, after)
			}
			before = stored(t, l)
		}
	}
}

func TestOneLookAddsAtMostAThousand(t *testing.T) {
	var l Ledger
	m := makePod("web-1", "u1")
	l.Update(Observe(m.container("app", "256Mi", running(0, 0)).pod), nil, at(0))
	kills := l.Update(Observe(m.container("app", "256Mi", crashLoop(1<<30, oom(1<<30, 10, 18))).pod), nil, at(20))
	if len(kills) != maxHidden+1 {
		t.Errorf("got %d kills from an absurd restartCount, want %d", len(kills), maxHidden+1)
	}
}

func BenchmarkLedgerUpdate(b *testing.B) {
	l := &Ledger{}
	obs := Observe(makePod("web-1", "u1").container("app", "256Mi", after(running(1, 19), oom(0, 10, 18))).pod)
	for b.Loop() {
		l.Update(obs, nil, t0.Add(time.Hour))
	}
}
