// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

func TestWholeOf(t *testing.T) {
	app, log := container("app", "100Mi", "200Mi"), container("log", "50Mi", "100Mi")
	raise := DesiredSize{Container: "app", Base: mib(100, 200), Want: mib(150, 400)}
	lower := DesiredSize{Container: "app", Base: mib(100, 200), Want: mib(50, 80)}
	bare := func(base, want, part memory.Size) DesiredSize {
		return DesiredSize{Container: "bare", Base: base, Want: want, PodLevelShare: part}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		base memory.Size
		asks []DesiredSize
		want memory.Size
		left string
	}{
		"nothing changes": {
			pod(app, log), mib(200, 400),
			[]DesiredSize{{"app", raise.Base, raise.Base, false, memory.Size{}, false}}, mib(200, 400), "",
		},
		"the owner set nothing":  {pod(app, log), memory.Size{}, []DesiredSize{raise}, memory.Size{}, ""},
		"room to share stays":    {pod(app, log), mib(200, 400), []DesiredSize{raise}, mib(250, 600), ""},
		"and when lowered":       {pod(app, log), mib(200, 400), []DesiredSize{lower}, mib(150, 400), ""},
		"only a limit":           {pod(app, log), mib(0, 400), []DesiredSize{raise}, mib(0, 600), ""},
		"only a request":         {pod(app, log), mib(200, 0), []DesiredSize{raise}, mib(250, 0), ""},
		"guaranteed stays so":    {pod(app, log), mib(400, 400), []DesiredSize{raise}, mib(600, 600), ""},
		"less than all, raised":  {pod(app, log), mib(160, 250), []DesiredSize{raise}, mib(210, 450), ""},
		"less than all, lowered": {pod(app, log), mib(160, 250), []DesiredSize{lower}, mib(110, 250), ""},
		"never below the largest": {
			pod(app, log), mib(0, 200),
			[]DesiredSize{{Container: "log", Base: mib(50, 100), Want: mib(50, 10)}}, mib(0, 200), "",
		},
		"one without a limit, not known": {
			pod(app, container("bare", "", "")), mib(0, 400),
			[]DesiredSize{raise}, mib(0, 400), "limit of container bare",
		},
		"one without a limit, known": {
			pod(app, container("bare", "", "")), mib(0, 400),
			[]DesiredSize{raise, bare(memory.Size{}, memory.Size{}, mib(80, 300))}, mib(0, 700), "",
		},
		"its request, too": {
			pod(container("bare", "", "")), mib(200, 400),
			[]DesiredSize{bare(memory.Size{}, memory.Size{}, mib(80, 300))}, mib(80, 400), "",
		},
		"its request, without a limit": {
			pod(container("bare", "", "")), mib(200, 0),
			[]DesiredSize{bare(memory.Size{}, memory.Size{}, mib(300, 0))}, mib(300, 0), "",
		},
		"no need of a limit, where the pod has one": {
			pod(container("bare", "", "")), mib(200, 400),
			[]DesiredSize{bare(memory.Size{}, memory.Size{}, mib(300, 0))}, mib(200, 400), "limit of container bare",
		},
		"it has a request, and room stays": {
			pod(container("bare", "64Mi", "")), mib(200, 400),
			[]DesiredSize{bare(mib(64, 0), mib(80, 0), mib(80, 300))}, mib(216, 400), "",
		},
		"decrease is Never": {
			pod(container("bare", "", "")), mib(200, 400),
			[]DesiredSize{{Container: "bare", PodLevelShare: mib(80, 300), NeverLower: true}}, mib(200, 400), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := WholeOf(tc.pod, tc.base, tc.asks)
			if got.Size != tc.want {
				t.Errorf("got %s, %s (%q), want %s, %s", got.Request, got.Limit, got.Why, tc.want.Request, tc.want.Limit)
			}
			if needsLess := len(tc.asks) == 1 && tc.asks[0].PodLevelShare.Limit > 0; needsLess != (got.KeptBecause != "") {
				t.Errorf("held is %q", got.KeptBecause)
			}
			if (got.Why != "") != (tc.want != tc.base) {
				t.Errorf("why is %q", got.Why)
			}
			if !strings.Contains(got.FixedBecause, tc.left) || (tc.left == "") != (got.FixedBecause == "") {
				t.Errorf("left is %q, want %q in it", got.FixedBecause, tc.left)
			}
		})
	}
}

// TestWholeIsAdmitted: what the API server takes before, it takes after: no container has a higher limit than the pod,
// requests together are within its request, and that is within its limit. So it goes with bounds around it, too, and
// growth is bounded by what the containers grow by.
func TestWholeIsAdmitted(t *testing.T) {
	moved := 0
	for seed := range uint64(20000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, base, asks := somePod(rng)
		if why := refusedWhole(p, base, nil); why != "" {
			continue
		}
		var held memory.Bytes // all that containers may take
		for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			held = held.Plus(SizeOf(&c.Resources).Limit)
		}
		for _, a := range asks {
			held = held.Plus(a.Want.Limit.Minus(a.Base.Limit)).Plus(a.PodLevelShare.Limit)
		}
		check := func(what string, whole Whole, sizes map[string]memory.Size, grown memory.Bytes) {
			if why := refusedWhole(p, whole.Size, sizes); why != "" && whole.FixedBecause == "" {
				t.Fatalf("seed %d, %s: %+v with %v is refused: %s", seed, what, whole, sizes, why)
			}
			if (base.Limit == 0) != (whole.Limit == 0) || (base.Request == 0) != (whole.Request == 0) {
				t.Fatalf("seed %d, %s: %+v of %+v", seed, what, whole, base)
			}
			if base.Limit > 0 && base.Limit == base.Request && whole.Limit != whole.Request {
				t.Fatalf("seed %d, %s: %+v is not guaranteed as %+v", seed, what, whole, base)
			}
			if whole.Limit > max(base.Limit.Plus(grown), held) {
				t.Fatalf("seed %d, %s: %s of %s, but containers only grew by %s to %s", seed, what, whole.Limit, base.Limit, grown,
					held)
			}
		}
		wanted, unchanged := map[string]memory.Size{}, append([]DesiredSize(nil), asks...)
		var grown memory.Bytes
		for i, a := range asks {
			wanted[a.Container] = a.Want
			grown = grown.Plus(a.Want.Limit.Minus(a.Base.Limit)).Plus(a.PodLevelShare.Limit)
			grown = grown.Plus(a.Want.Request.Minus(a.Base.Request))
			unchanged[i].Want, unchanged[i].PodLevelShare = a.Base, memory.Size{}
		}
		whole := WholeOf(p, base, asks)
		if whole.Limit < base.Limit {
			t.Fatalf("seed %d: the limit of %s is lowered to %s", seed, base.Limit, whole.Limit)
		}
		check("alone", whole, wanted, grown)
		if whole != WholeOf(p, base, asks) {
			t.Fatalf("seed %d: equal input, other output", seed)
		}
		if same := WholeOf(p, base, unchanged); same != (Whole{Size: base}) {
			t.Fatalf("seed %d: nothing changes, but the pod: %+v of %+v", seed, same, base)
		}
		if whole.Size != base {
			moved++
		}
		f := Facts{Nodes: Nodes{LargestNode: memory.Bytes(rng.IntN(3)) * 400 * memory.MiB}}
		if rng.IntN(2) == 0 {
			f.limits = limitsOf([]corev1.LimitRange{limitRange("bounds", item(corev1.LimitTypePod, "", "600Mi", ""))})
		}
		fitted, within := f.Fit(p, Whole{Size: base}, asks)
		found := map[string]memory.Size{}
		for i, got := range fitted {
			found[asks[i].Container] = got.Size
			if asks[i].Base.Limit == 0 && got.Limit != 0 {
				t.Fatalf("seed %d: a container got a limit of its own: %+v", seed, got)
			}
		}
		within.FixedBecause = "" // here containers are brought to what stays
		check("within bounds", within, found, grown)
		if len(f.limits) > 0 && within.Limit > max(base.Limit, 600*memory.MiB) {
			t.Fatalf("seed %d: %+v of %+v is above the LimitRange", seed, within, base)
		}
	}
	if moved < 1000 {
		t.Errorf("only %d pods had another size: too few to mean anything", moved)
	}
}

// somePod is a pod with a size as a whole, and what becomes of its containers.
func somePod(rng *rand.Rand) (*corev1.Pod, memory.Size, []DesiredSize) {
	amount := func() memory.Bytes { return memory.Bytes(1+rng.IntN(20)) * 16 * memory.MiB }
	var all []corev1.Container
	var asks []DesiredSize
	for i := range 1 + rng.IntN(4) {
		var own memory.Size
		if rng.IntN(4) > 0 {
			own.Limit = amount()
		}
		if rng.IntN(3) > 0 {
			own.Request = amount()
			if own.Limit > 0 {
				own.Request = min(own.Request, own.Limit)
			}
		}
		c := container(fmt.Sprint("c", i), "", "")
		c.Resources = corev1.ResourceRequirements{Limits: listOf(own.Limit), Requests: listOf(own.Request)}
		all = append(all, c)
		if rng.IntN(5) == 0 {
			continue
		}
		a := DesiredSize{Container: c.Name, Base: own, Want: own, NeverLower: rng.IntN(5) == 0}
		want := amount()
		switch {
		case own.Limit > 0:
			a.Want = memory.Size{Limit: want, Request: min(amount(), want)}
		case rng.IntN(4) > 0:
			a.PodLevelShare = memory.Size{Limit: want, Request: min(amount(), want)}
			if own.Request > 0 {
				a.Want.Request = a.PodLevelShare.Request
			}
		}
		asks = append(asks, a)
	}
	p := pod(all...)
	if last := &all[len(all)-1]; rng.IntN(3) == 0 {
		if rng.IntN(2) == 0 {
			last.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers, p.Spec.Containers = all[len(all)-1:], all[:len(all)-1]
	}
	most := func() memory.Bytes { return memory.Bytes(rng.IntN(60)) * 16 * memory.MiB }
	base := memory.Size{Limit: most(), Request: most()}
	if base.Limit > 0 && rng.IntN(4) == 0 {
		base.Request = base.Limit
	}
	return p, base, asks
}

// refusedWhole repeats what the API server asks of a pod with a size as a whole.
func refusedWhole(p *corev1.Pod, whole memory.Size, sizes map[string]memory.Size) string {
	sum := together(p, sizes).Request
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			if size := sizeOf(&list[i], sizes); whole.Limit > 0 && size.Limit > whole.Limit {
				return "limit of " + list[i].Name
			}
		}
	}
	switch {
	case whole.Limit > 0 && max(whole.Request, sum) > whole.Limit: // a request that is missing is their sum
		return "request above limit"
	case whole.Request > 0 && sum > whole.Request:
		return "requests together"
	}
	return ""
}

func TestRunningWhole(t *testing.T) {
	app, log := container("app", "100Mi", "200Mi"), container("log", "50Mi", "100Mi")
	raise := DesiredSize{Container: "app", Base: mib(100, 200), Want: mib(150, 400)}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		asks []DesiredSize
		want memory.Size
	}{
		"less than all":                  {WithWhole(pod(app, log), mib(160, 250)), []DesiredSize{raise}, mib(210, 450)},
		"all, and no more":               {WithWhole(pod(app, log), mib(160, 300)), []DesiredSize{raise}, mib(210, 500)},
		"room is used, a little is left": {WithWhole(pod(app, log), mib(160, 400)), []DesiredSize{raise}, mib(210, 516)},
		"there is room enough":           {WithWhole(pod(app, log), mib(160, 900)), []DesiredSize{raise}, mib(210, 900)},
		"above one container, for kills": {WithWhole(pod(app), mib(160, 300)), []DesiredSize{raise}, mib(210, 416)},
		"lowered": {
			WithWhole(pod(app, log), mib(160, 300)),
			[]DesiredSize{{Container: "app", Base: mib(100, 200), Want: mib(50, 80)}}, mib(110, 300),
		},
		"for one without a limit": {
			WithWhole(pod(app, container("bare", "", "")), mib(160, 300)),
			[]DesiredSize{{Container: "bare", PodLevelShare: mib(80, 300)}}, mib(180, 500),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RunningWhole(tc.pod, tc.asks); got.Size != tc.want {
				t.Errorf("got %s, %s, want %s, %s", got.Request, got.Limit, tc.want.Request, tc.want.Limit)
			}
		})
	}
}

// TestRunningWholeDoesNotRunAway: sizes that go up and down for a year end with a pod that is no larger than the most
// that its containers could ever take together, and that the API server takes at each step.
func TestRunningWholeDoesNotRunAway(t *testing.T) {
	moved := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p, base, asks := somePod(rng)
		if refusedWhole(p, base, nil) != "" || base == (memory.Size{}) {
			continue
		}
		p = WithWhole(p, base)
		for i := range asks {
			asks[i].Want = asks[i].Base
		}
		most := base.Limit
		for range 50 {
			sizes := map[string]memory.Size{}
			for i := range asks {
				a := &asks[i]
				a.Base = a.Want
				if a.PodLevelShare == (memory.Size{}) {
					limit := memory.Bytes(1+rng.IntN(500)) * memory.MiB
					a.Want = memory.Size{Limit: limit * min(a.Base.Limit, 1), Request: min(a.Base.Request, 1) * (limit / 2)}
				}
				sizes[a.Container] = a.Want
			}
			before := WholeSize(p)
			p = resizedTo(p, asks, true)
			whole := RunningWhole(p, asks)
			p = resizedTo(p, asks, false)
			if why := refusedWhole(p, whole.Size, sizes); why != "" && whole.FixedBecause == "" {
				t.Fatalf("seed %d: %+v is refused: %s", seed, whole, why)
			}
			if whole.FixedBecause != "" {
				break
			}
			if whole.Limit < before.Limit {
				t.Fatalf("seed %d: lowered from %s to %s", seed, before.Limit, whole.Limit)
			}
			sum := together(p, sizes)
			needed := max(sum.Limit.Plus(podOverhead), sum.Request)
			for _, a := range asks {
				needed = needed.Plus(a.PodLevelShare.Limit)
			}
			if most = max(most, needed); whole.Limit > most {
				t.Fatalf("seed %d: the pod has grown to %s, and its containers never were to have more than %s", seed,
					whole.Limit, most)
			}
			if whole.Limit > before.Limit {
				moved++
			}
			p = WithWhole(p, whole.Size)
		}
	}
	if moved < 500 {
		t.Errorf("the pod grew %d times: the test asks too little", moved)
	}
}

// resizedTo is the pod with the sizes that its containers had, or are to have.
func resizedTo(p *corev1.Pod, asks []DesiredSize, before bool) *corev1.Pod {
	out := p.DeepCopy()
	for _, list := range [][]corev1.Container{out.Spec.Containers, out.Spec.InitContainers} {
		for i := range list {
			for _, a := range asks {
				if size := a.Want; list[i].Name == a.Container {
					if before {
						size = a.Base
					}
					list[i].Resources = corev1.ResourceRequirements{Limits: listOf(size.Limit), Requests: listOf(size.Request)}
				}
			}
		}
	}
	return out
}
