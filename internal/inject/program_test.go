// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

func mib(n memory.Bytes) memory.Bytes { return n * memory.MiB }

// TestOfferForAnotherProgram: evidence of one program raises the size of another whose owner asked for the same, and
// lowers none; an owner who changed the memory gets what they asked for, unless the program is known to need more.
func TestOfferForAnotherProgram(t *testing.T) {
	owner := memory.Size{Request: mib(16), Limit: mib(32)}
	edited := memory.Size{Request: mib(640), Limit: mib(1024)}
	raised := Offer{Program: "v1", Owner: owner, Size: memory.Size{Request: mib(55), Limit: mib(224)}}
	lowered := Offer{
		Program: "v1", Owner: memory.Size{Request: mib(256), Limit: mib(512)},
		Size: memory.Size{Request: mib(60), Limit: mib(90)},
	}
	kept := Offer{ // no pod was watched with the recommended size
		Program: "v1", Owner: memory.Size{Request: mib(256), Limit: mib(512)},
		Size: memory.Size{Request: mib(256), Limit: mib(512)}, Recommended: memory.Size{Request: mib(100), Limit: mib(150)},
	}
	below, above := memory.Size{Request: mib(64), Limit: mib(64)}, memory.Size{Request: mib(128), Limit: mib(256)}
	for name, tc := range map[string]struct {
		offer   Offer
		program string
		owner   memory.Size
		want    memory.Size
	}{
		"the same program":                      {raised, "v1", owner, raised.Size},
		"another program may be raised":         {raised, "v2", owner, raised.Size},
		"the owner raised the limit themselves": {raised, "v2", edited, memory.Size{}},
		"also without a new program":            {raised, "v1", edited, memory.Size{}},
		"the same program is lowered":           {lowered, "v1", lowered.Owner, lowered.Size},
		"another program is not lowered":        {lowered, "v2", lowered.Owner, memory.Size{}},
		"the owner lowered it below the need":   {kept, "v1", below, kept.Recommended},
		"and another program with it":           {kept, "v2", below, memory.Size{}},
		"the owner lowered it above the need":   {kept, "v1", above, memory.Size{}},
		"no limit is not replaced by one of others": {
			Offer{Program: "v1", Size: raised.Size}, "v2", memory.Size{}, memory.Size{Request: mib(55)},
		},
		"an offer without a program is for all": {Offer{Size: lowered.Size}, "v2", owner, lowered.Size},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.offer.sizeFor(tc.program, tc.owner); got != tc.want {
				t.Errorf("size is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestEachProgramHasItsOffer: what is recommended for the newest may be unknown yet.
func TestEachProgramHasItsOffer(t *testing.T) {
	size := func(limit string) *v1alpha1.Size {
		q := resource.MustParse(limit)
		return &v1alpha1.Size{Limit: &q}
	}
	rec := v1alpha1.ContainerRecommendation{
		Container: "app", Program: "v2", Owner: size("600Mi"), Recommended: size("300Mi"),
		OtherPrograms: []v1alpha1.ProgramSize{{Program: "v1", Owner: size("256Mi"), NewPods: *size("512Mi")}},
	}
	for _, newPods := range []*v1alpha1.Size{nil, size("700Mi")} {
		rec.NewPods = newPods
		offer := OffersIn([]v1alpha1.ContainerRecommendation{rec})["app"]
		for _, tc := range []struct {
			program     string
			owner, want memory.Bytes
		}{
			{"v1", 256, 512}, {"v1", 128, 0}, {"v1", 1024, 0}, {"v3", 256, 0}, {"v2", 600, sizeOf(newPods).Limit / memory.MiB},
		} {
			got := offer.sizeFor(tc.program, memory.Size{Limit: mib(tc.owner)})
			if got != (memory.Size{Limit: mib(tc.want)}) {
				t.Errorf("a pod of %s with %dMi gets %s, want %dMi", tc.program, tc.owner, got, tc.want)
			}
		}
	}
	if len(OffersIn([]v1alpha1.ContainerRecommendation{{Container: "app", Program: "v2"}})) > 0 {
		t.Error("nothing is offered, and there is an offer")
	}
}

// TestAnOfferIsRaisedForOneProgram: its pods get at least so much, and others what they got.
func TestAnOfferIsRaisedForOneProgram(t *testing.T) {
	limit := func(n memory.Bytes) memory.Size { return memory.Size{Limit: mib(n)} }
	v2 := Offer{
		Program: "v2", Owner: limit(200), Size: limit(300), Recommended: limit(300),
		Others: []Offer{{Program: "v1", Owner: limit(100), Size: limit(150)}},
	}
	onlyOthers := Offer{Program: "v2", Owner: limit(200), Others: v2.Others}
	for name, tc := range map[string]struct {
		offer           Offer
		of              string
		owner, to, want memory.Bytes
	}{
		"one that is remembered":                {v2, "v1", 100, 220, 220},
		"where the newest has none":             {onlyOthers, "v1", 100, 220, 220},
		"to less than it gets":                  {v2, "v1", 100, 120, 150},
		"the newest":                            {v2, "v2", 200, 500, 500},
		"an unknown one":                        {v2, "v3", 100, 220, 220},
		"to less than another program gives it": {v2, "v3", 200, 220, 300},
	} {
		got := tc.offer.Raised(Program{ID: tc.of, Owner: limit(tc.owner)}, limit(tc.to))
		if size := got.sizeFor(tc.of, limit(tc.owner)); size != limit(tc.want) {
			t.Errorf("%s: its pods get %s, want %s", name, size, limit(tc.want))
		}
		for _, other := range []struct {
			program string
			owner   memory.Size
		}{{"v1", limit(100)}, {"v2", limit(200)}, {"v4", limit(200)}} {
			before := tc.offer.sizeFor(other.program, other.owner)
			if after := got.sizeFor(other.program, other.owner); tc.of != other.program && tc.of != "v2" && after != before {
				t.Errorf("%s: pods of %s get %s, want %s", name, other.program, after, before)
			}
		}
	}
}

// TestProgramOf: what the owner wrote tells programs apart; labels, annotations and sizes do not, nor what memfit set.
func TestProgramOf(t *testing.T) {
	pod := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "app:1", Command: []string{"a", "b"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
			Resources: corev1.ResourceRequirements{Limits: withMemory(nil, mib(64))},
		}}}}
		edit(p)
		return p
	}
	first := ProgramOf(pod(func(*corev1.Pod) {}), "app", false)
	if first.ID == "" || first.Owner.Limit != mib(64) || first.Recorded {
		t.Fatalf("program is %+v", first)
	}
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		same bool
	}{
		"restartedAt": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "x"}
		}, true},
		"a size":     {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = withMemory(nil, mib(128)) }, true},
		"an image":   {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }, false},
		"a variable": {func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "2" }, false},
		"a command of other words": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Command, p.Spec.Containers[0].Args = []string{"a"}, []string{"b"}
		}, false},
		"envFrom": {func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{Prefix: "X"}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ProgramOf(pod(tc.edit), "app", false); (got.ID == first.ID) != tc.same {
				t.Errorf("program is %s, that of the first pod %s", got.ID, first.ID)
			}
		})
	}
	run := ProgramOf(pod(func(*corev1.Pod) {}), "app", true)
	other := ProgramOf(pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Args, p.Spec.Containers[0].Env[0].Value = []string{"--run=x7k2p"}, "run-x7k2p"
	}), "app", true)
	image := ProgramOf(pod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }), "app", true)
	if run.ID != other.ID || run.ID == image.ID {
		t.Errorf("programs of two runs: %s, %s, and of another image: %s", run.ID, other.ID, image.ID)
	}
	if p := ProgramOf(pod(func(*corev1.Pod) {}), "missing", false); p != (Program{}) {
		t.Errorf("program of a container that is missing is %+v", p)
	}
}

// TestTheNameOfAPodIsNoPartOfItsProgram: CloudNativePG writes each instance's name into it (POD_NAME), and any chart
// that of the first replica into all.
func TestTheNameOfAPodIsNoPartOfItsProgram(t *testing.T) {
	program := func(pod, variable, argument string) string {
		return ProgramOf(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Image: "app:1", Args: []string{argument}, Env: []corev1.EnvVar{{Name: "A", Value: variable}},
			}}},
		}, "app", false).ID
	}
	for name, tc := range map[string]struct {
		pod, variable, argument             string
		other, otherVariable, otherArgument string
		same                                bool
	}{
		"each has its own":        {"db-1", "db-1", "x", "db-2", "db-2", "x", true},
		"as an argument":          {"db-1", "x", "db-1", "db-12", "x", "db-12", true},
		"all have the first's":    {"db-1", "db-1", "x", "db-2", "db-1", "x", true},
		"without an ordinal":      {"db-abc", "db-abc", "x", "db-xyz", "db-xyz", "x", true},
		"a number is no name":     {"db-1", "1", "x", "db-2", "2", "x", false},
		"a name of other pods":    {"db-1", "queue-1", "x", "db-2", "queue-2", "x", false},
		"a longer word":           {"db-1", "db-1a", "x", "db-2", "db-2a", "x", false},
		"digits without a hyphen": {"db1", "db1", "x", "db2", "db1", "x", false},
		"a pod without a name":    {"", "", "x", "", "1", "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := program(tc.pod, tc.variable, tc.argument), program(tc.other, tc.otherVariable, tc.otherArgument)
			if (a == b) != tc.same {
				t.Errorf("programs are %s and %s, want the same: %t", a, b, tc.same)
			}
		})
	}
}

// TestTheRecordNamesTheProgramOfTheOwner: it is the same before and after the injection, and whatever the limit is that
// settings are derived from.
func TestTheRecordNamesTheProgramOfTheOwner(t *testing.T) {
	programs := map[string]bool{}
	for _, limit := range []memory.Bytes{mib(512), mib(1024)} {
		in := nodePod(limit.String(), of("NodeJS", v1alpha1.TuningSpec{}))
		once := inject(in)
		if len(once.Spec.Containers[0].Env) == 0 {
			t.Fatal("nothing was injected")
		}
		in.Pod = once
		twice := inject(in)
		for _, pod := range []*corev1.Pod{once, twice} {
			p := ProgramOf(pod, "app", false)
			if programs[p.ID] = true; !p.Recorded || p.Owner.Limit != limit {
				t.Errorf("program of a pod with limit %s is %+v", limit, p)
			}
		}
		in.Sizes = map[string]Offer{"app": {
			Program: ProgramOf(once, "app", false).ID, Owner: ProgramOf(once, "app", false).Owner,
			Size: memory.Size{Limit: mib(300)},
		}}
		if m := MakePlan(in).Edit("app").Memory; m == nil || m.Limit != mib(300) {
			t.Errorf("a pod of the program that a size is for gets %v", m)
		}
	}
	if len(programs) != 1 {
		t.Errorf("one program has %d fingerprints: %v", len(programs), programs)
	}
}

// TestAnImageThatIsChangedInThePodIsAnotherProgram: what the record has of the owner stays, and an image that a later
// webhook rewrites at creation is the one that is recorded.
func TestAnImageThatIsChangedInThePodIsAnotherProgram(t *testing.T) {
	in := nodePod("512Mi", of("NodeJS", v1alpha1.TuningSpec{}))
	in.Pod.Spec.Containers[0].Image = "app:1"
	in.Sizes = map[string]Offer{"app": {Size: memory.Size{Limit: mib(300)}}}
	pod := inject(in)
	first := ProgramOf(pod, "app", false)
	if first.Changed || first.Created != mib(300) {
		t.Fatalf("program of the pod as it was created is %+v", first)
	}
	with := func(image string) *corev1.Pod {
		other := pod.DeepCopy()
		other.Spec.Containers[0].Image = image
		return other
	}
	for _, perRun := range []bool{false, true} {
		got, next := ProgramOf(with("app:2"), "app", perRun), ProgramOf(with("app:3"), "app", perRun)
		want := Program{ID: got.ID, Owner: first.Owner, Recorded: true, Created: first.Created, Changed: true}
		if got != want || got.ID == first.ID || next.ID == got.ID {
			t.Errorf("program is %+v, that of a third image %s, and before %+v", got, next.ID, first)
		}
	}
	in.Pod = with("mirror.example/app:1")
	if got := ProgramOf(inject(in), "app", false); got.Changed || got.ID == first.ID {
		t.Errorf("program of an image that was rewritten before the webhook was asked again is %+v", got)
	}
}

// TestLimitAtCreation: a record has of a size only what memfit changed; the rest is the owner's.
func TestLimitAtCreation(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		want   memory.Bytes
	}{
		"no record":        {"", 0},
		"nothing sized":    {`"owner": {"limit": "64Mi", "request": "64Mi"}`, mib(64)},
		"only the request": {`"owner": {"limit": "64Mi"}, "size": {"request": "45Mi", "wasRequest": "64Mi"}`, mib(64)},
		"only the limit":   {`"owner": {"limit": "64Mi"}, "size": {"limit": "96Mi", "wasLimit": "64Mi"}`, mib(96)},
		"no limit":         {`"owner": {"request": "64Mi"}, "size": {"request": "45Mi", "wasRequest": "64Mi"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if tc.record != "" {
				pod.Annotations = map[string]string{
					v1alpha1.InjectedAnnotation: `{"v": 1, "containers": {"app": {` + tc.record + `}}}`,
				}
			}
			if got := LimitAtCreation(pod, "app"); got != tc.want {
				t.Errorf("limit is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestARequestThatIsDerivedFromTheLimit: OpenShift's ClusterResourceOverride, or a Kyverno policy, sets the request to
// a share of the limit after memfit, and memfit is called again. Its limit is not the owner's for that.
func TestARequestThatIsDerivedFromTheLimit(t *testing.T) {
	in := nodePod("256Mi", v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingOnCreate}})
	owner := memory.Size{Limit: mib(256), Request: mib(64)}
	in.Pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	in.Sizes = map[string]Offer{"app": {
		Program: ProgramOf(inject(in), "app", false).ID, Owner: owner, Size: memory.Size{Limit: mib(81), Request: mib(70)},
	}}
	in.Pod = inject(in)
	c := &in.Pod.Spec.Containers[0]
	if got := constraints.SizeOf(&c.Resources).Limit; got != mib(81) {
		t.Fatalf("the limit is %s, so this tests nothing: %s", got, in.Pod.Annotations[v1alpha1.InjectedAnnotation])
	}
	c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("20Mi")
	again := inject(in)
	if got := ProgramOf(again, "app", false).Owner; got != owner {
		t.Errorf("the owner's size is %s after the second call, want %s", got, owner)
	}
	want := memory.Size{Limit: mib(81), Request: mib(20)}
	if got := constraints.SizeOf(&again.Spec.Containers[0].Resources); got != want {
		t.Errorf("it has %s, want %s", got, want)
	}
}
