// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout/before"
	"github.com/memfit/memfit/internal/rollout/before/drift"
	"github.com/memfit/memfit/internal/rollout/before/guards"
	"github.com/memfit/memfit/internal/shape"
)

// recorded are inputs of decisions, one a line: of all tests of internal/workload, ordinary days and the simulated
// kubelet among them, the pods of which set no spec.resources.
const recorded = "testdata/before/recorded.jsonl.gz"

// TestRecordedInputsAreDecidedAsBefore compares Decide with what it was before its guards became one list of gates.
func TestRecordedInputsAreDecidedAsBefore(t *testing.T) {
	file, err := os.Open(cmp.Or(os.Getenv("RECORDED"), recorded))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(zipped)
	lines.Buffer(nil, 16<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var r struct {
			Before State
			Kills  []memory.OOMKill
			In     Input
			State  State
			Drift  *drift.Input
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		var had struct {
			In struct {
				Desired map[Key]struct{ Paused, Conflict string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &had); err != nil {
			t.Fatal(err)
		}
		for _, one := range had.In.Desired { // they were by container, and are the workload's
			r.In.Paused, r.In.Conflict = one.Paused, one.Conflict
		}
		in := r.In
		in.State = r.Before
		after := r.In
		after.State, after.Restart = r.State, nil
		if r.Drift != nil {
			dangerOf(r.Drift, &after)
		}
		asBefore(t, in, r.Kills, after)
	}
	if n < 100 {
		t.Errorf("only %d inputs", n)
	}
	t.Logf("%d inputs", n)
}

var differences struct {
	sync.Mutex
	count   map[string]int
	example map[string]string
}

// TestMain prints in which ways decisions differ from before.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, class := range slices.Sorted(maps.Keys(differences.count)) {
		fmt.Printf("DIFFERS %6d %s\n%s\n", differences.count[class], class, differences.example[class])
	}
	os.Exit(code)
}

// compared counts the decisions of the tests, of which not all are compared: it takes time.
var compared int

func differs(class, example string) {
	differences.Lock()
	defer differences.Unlock()
	if differences.count == nil {
		differences.count, differences.example = map[string]int{}, map[string]string{}
	}
	if differences.count[class]++; differences.count[class] <= 2 {
		differences.example[class] += "    " + example + "\n"
	}
}

// asBefore compares what is observed and decided with what was before. in is the input of Observe, after of Decide.
func asBefore(t testing.TB, in Input, kills []memory.OOMKill, after Input) {
	t.Helper()
	was, wasFound := before.Observe(toBefore(t, in), kills)
	is, isFound := Observe(in, kills)
	if a, b := encode(t, &was), encode(t, &is); a != b {
		differs("observed", a+"\n    "+b)
	}
	if a, b := encode(t, wasFound), encode(t, isFound); a != b {
		differs("findings", a+"\n    "+b)
	}
	old, got := before.Decide(toBefore(t, after)), Decide(after)
	if held := heldBefore(&after); held != "" {
		in := after
		in.Restart = nil
		old = before.Decide(toBefore(t, in))
		old.RestartHeld = held
	}
	a, b := encode(t, old.Actions), encode(t, got.Actions)
	if a != b {
		differs(fmt.Sprintf("actions of %s %s", old.Reason, got.Reason), a+" "+old.Message+"\n    "+b+" "+got.Message)
	} else if a, b := encode(t, &old.State), encode(t, &got.State); a != b {
		differs("state", a+"\n    "+b)
	}
	if (old.RestartHeld == "") != (got.RestartHeld == "") {
		differs("restart held", old.RestartHeld+"\n    "+got.RestartHeld)
	}
	if old.Reason != got.Reason || old.UpToDate != got.UpToDate {
		differs(fmt.Sprintf("reason %s %s", old.Reason, got.Reason), old.Message+"\n    "+got.Message)
	} else if words(old.Message) != words(got.Message) {
		differs("message of "+old.Reason, old.Message+"\n    "+got.Message)
	}
	if old.RequeueAfter != got.RequeueAfter {
		differs("requeue "+old.Reason+" "+got.Reason, old.RequeueAfter.String()+" "+got.RequeueAfter.String()+" "+got.Message)
	}
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// toBefore is an input as it was before.
func toBefore(t testing.TB, in Input) before.Input {
	t.Helper()
	windows, pods, state := in.Policy.Windows, in.Pods, in.State
	in.Policy.Windows, in.Pods, in.State = nil, nil, State{}
	var out before.Input
	recode(t, in, &out)
	for key, desired := range out.Desired {
		desired.Paused, desired.Conflict = in.Paused, in.Conflict
		out.Desired[key] = desired
	}
	out.Policy.Windows = windows
	recode(t, &state, &out.State)
	for _, pod := range pods {
		var p before.Pod
		whole := pod.Whole
		pod.Whole = nil
		recode(t, pod, &p)
		if whole != nil {
			p.Whole = &before.Whole{
				Spec: whole.Spec, Actual: whole.Actual, Stays: whole.Stays, Young: whole.Young,
				Follow: func(sizes, parts map[string]memory.Size) (memory.Size, guards.Refusal) {
					to, refused := whole.Follow(sizes, parts)
					return to, guards.Refusal(refused)
				},
			}
		}
		out.Pods = append(out.Pods, p)
	}
	return out
}

func recode(t testing.TB, from, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(encode(t, from)), to); err != nil {
		t.Fatal(err)
	}
}

// dangerOf fills in what was given to the package drift.
func dangerOf(was *drift.Input, in *Input) {
	pod, uid, why, at, workingSetOnly, found := drift.Worst(*was)
	if found {
		in.Restart = &Candidate{Pod: pod, UID: uid, Why: why, Measured: at, WorkingSetOnly: workingSetOnly}
	}
	in.Restarts = RestartPolicy{
		MaxPerDay: was.Policy.MaxPerDay, MinReplicas: was.Policy.MinReplicas, Cooldown: was.Policy.Cooldown,
	}
	for _, r := range was.Done {
		in.Restarts.Done = append(in.Restarts.Done, PastRestart(r))
	}
	if p, paused := strings.CutPrefix(was.Refused, "paused by "); paused {
		in.Paused = p
	} else if was.Refused != in.Policy.NoEvict && !strings.HasPrefix(was.Refused, "a Job's") {
		in.Restarts.Refused = was.Refused
	}
}

// heldBefore says why the package drift did not propose the pod in danger.
func heldBefore(in *Input) string {
	if in.Restart == nil {
		return ""
	}
	was := drift.Input{
		Shapes: map[string]shape.Shape{"app": {Kind: shape.StepRetention, Confidence: memory.High}}, Now: in.Now,
		Policy: drift.Policy{
			MaxPerDay: in.Restarts.MaxPerDay, MinReplicas: in.Restarts.MinReplicas, Cooldown: in.Restarts.Cooldown,
		},
	}
	switch {
	case in.Paused != "":
		was.Refused = "paused by " + in.Paused
	case in.Policy.NoEvict != "":
		was.Refused = in.Policy.NoEvict
	case in.Policy.OnlyRaise != "":
		was.Refused = "a Job's pod would lose its work"
	default:
		was.Refused = in.Restarts.Refused
	}
	for _, r := range in.Restarts.Done {
		was.Done = append(was.Done, drift.Restart(r))
	}
	for i := range in.Pods {
		p := drift.Pod{Name: in.Pods[i].Name, UID: in.Pods[i].UID, Ready: in.Pods[i].Ready, Leaving: in.Pods[i].Leaving}
		if p.UID == in.Restart.UID {
			p.Containers = []drift.Container{{
				Name: "app", Use: 90, Limit: 100, At: in.Restart.Measured, WorkingSetOnly: in.Restart.WorkingSetOnly,
			}}
		}
		was.Pods = append(was.Pods, p)
	}
	return drift.Choose(was).Held
}
