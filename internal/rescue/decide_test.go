// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const mib = memory.MiB

var start = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// question is a set of arguments of Decide that is answered with a loan: 60 MiB below a limit of 512Mi at 100 MiB/s.
type question struct {
	alarm  Alarm
	known  Known
	policy Policy
	node   Node
	loans  []Loan
	now    time.Time
}

func lent() question {
	return question{
		alarm: Alarm{
			Container: "app", ID: "abc", Sequence: 7, At: start, Demand: 452 * mib, Limit: 512 * mib, PerSecond: 100 * mib,
			Left: 600 * time.Millisecond,
		},
		known: Known{
			ID: "abc", Limit: 512 * mib, Asked: 512 * mib, Demand: 100 * mib, DemandAt: start.Add(-10 * time.Second),
			Handled: 6,
		},
		policy: Policy{Enabled: true, Shares: []Share{{NodeFull, 64 * memory.GiB}}},
		now:    start.Add(50 * time.Millisecond),
	}
}

func limitOf(mebibytes memory.Bytes) memory.Size { return memory.Size{Limit: mebibytes * mib} }

func (q *question) ask() (*Loan, *Refusal) {
	return Decide(q.alarm, q.known, q.policy, q.node, q.loans, q.now)
}

func TestRefusals(t *testing.T) {
	ago := func(d time.Duration) Loan {
		return Loan{Container: "app", At: start.Add(-d), From: limitOf(256), To: limitOf(512)}
	}
	of := func(container string, sequence int64, l Loan) Loan {
		l.Container, l.Sequence = container, sequence
		return l
	}
	unsent := func(q *question) {
		q.loans = []Loan{{Container: "app", Sequence: 7, At: start, From: limitOf(512), To: limitOf(812)}}
	}
	over := func(l Loan) Loan { l.Returned = start; return l }
	all := Loan{Container: "app", At: start.Add(-3 * Hold), From: limitOf(128), To: limitOf(512)}
	for name, c := range map[string]struct {
		change func(*question)
		want   Cause
	}{
		"a loan":                          {func(*question) {}, ""},
		"another instance":                {func(q *question) { q.known.ID = "def" }, OtherInstance},
		"no instance":                     {func(q *question) { q.known.ID, q.alarm.ID = "", "" }, OtherInstance},
		"the same alarm again":            {func(q *question) { q.known.Handled = 7 }, Replayed},
		"an older alarm":                  {func(q *question) { q.alarm.Sequence = 5 }, Replayed},
		"an alarm from before a failover": {func(q *question) { q.now = start.Add(11 * time.Second) }, Stale},
		"a clock that is slightly behind": {func(q *question) { q.now = start.Add(9 * time.Second) }, ""},
		"a clock that is ahead":           {func(q *question) { q.now = start.Add(-6 * time.Second) }, FromTheFuture},
		"a clock that is slightly ahead":  {func(q *question) { q.now = start.Add(-4 * time.Second) }, ""},
		"no limit":                        {func(q *question) { q.alarm.Limit = 0 }, Contradicted},
		"no growth":                       {func(q *question) { q.alarm.PerSecond = 0 }, Contradicted},
		"far from its limit": {func(q *question) {
			q.alarm.Demand, q.alarm.Left = 100*mib, 4120*time.Millisecond
		}, Contradicted},
		"numbers that do not add up":  {func(q *question) { q.alarm.Left = 5 * time.Second }, Contradicted},
		"more than the limit (swap)":  {func(q *question) { q.alarm.Demand, q.alarm.Left = 600*mib, 0 }, ""},
		"a higher limit than the pod": {func(q *question) { q.known.Limit, q.known.Asked = 400*mib, 400*mib }, Contradicted},
		"a limit rounded to pages":    {func(q *question) { q.known.Limit, q.known.Asked = 512*mib+999, 512*mib+999 }, ""},
		"a container without a limit": {func(q *question) { q.known.Limit, q.known.Asked = 0, 0 }, Contradicted},
		"a raise in flight":           {func(q *question) { q.known.Asked = 600 * mib }, AlreadyRaised},
		"a raise that took effect": {func(q *question) {
			q.known.Limit, q.known.Asked = 600*mib, 600*mib
		}, AlreadyRaised},
		"a decrease in flight": {func(q *question) { q.known.Asked = 500 * mib }, ""},
		"the kubelet read far less since": {func(q *question) {
			q.known.DemandAt, q.known.Demand = start.Add(20*time.Millisecond), 150*mib
		}, Contradicted},
		"not enabled":                {func(q *question) { q.policy.Enabled = false }, NotEnabled},
		"restarts":                   {func(q *question) { q.policy.RestartsOnResize = true }, RestartsOnResize},
		"the node is short":          {func(q *question) { q.node.ShortOfMemory = true }, NodeShortOfMemory},
		"the node had enough":        {func(q *question) { q.node.Loans = MaxNodeLoans }, NodeBound},
		"paused":                     {func(q *question) { q.policy.Paused = true }, Paused},
		"another autoscaler":         {func(q *question) { q.policy.Conflict = true }, Conflict},
		"the workload had its loans": {func(q *question) { q.known.Loans = MaxWorkloadLoans }, WorkloadBound},
		"a replayed alarm of a paused workload": {func(q *question) {
			q.policy.Paused, q.known.Handled = true, 7
		}, Replayed},
		"a loan of this alarm": {func(q *question) {
			q.loans = []Loan{of("app", 7, ago(time.Second))}
		}, Replayed},
		"a loan of a later alarm, for another container": {func(q *question) {
			q.loans = []Loan{of("proxy", 8, ago(time.Second))}
		}, Replayed},
		"loans for another container": {func(q *question) {
			q.loans = []Loan{of("proxy", 5, ago(time.Minute)), of("proxy", 6, ago(time.Second))}
		}, ""},
		"a loan that was not sent": {unsent, ""},
		"a loan that was not sent, by another process": {func(q *question) {
			unsent(q)
			q.known.Handled, q.known.Loans, q.node.Loans = 7, MaxWorkloadLoans, MaxNodeLoans
			q.loans = append(q.loans, ago(time.Minute))
		}, ""},
		"a loan that was not sent in time": {func(q *question) {
			unsent(q)
			q.now = start.Add(11 * time.Second)
		}, Stale},
		"a loan that was not sent, and a restart since": {func(q *question) {
			unsent(q)
			q.known.ID = "def"
		}, OtherInstance},
		"a loan that was not sent, and a pause since": {func(q *question) {
			unsent(q)
			q.policy.Paused = true
		}, Paused},
		"a loan that bounds made small": {func(q *question) { q.loans = []Loan{ago(time.Minute)} }, ""},
		"a leak":                        {func(q *question) { q.loans = []Loan{all} }, LeakSuspected},
		"a leak that got two small loans": {func(q *question) {
			q.loans = []Loan{{Container: "app", From: limitOf(128), To: limitOf(256)}, ago(time.Minute)}
		}, LeakSuspected},
		"a loan that became the recommended size": {func(q *question) { q.loans = []Loan{over(all)} }, ""},
		"a leak of another container":             {func(q *question) { q.loans = []Loan{of("proxy", 5, all)} }, ""},
		"limit.max reached": {func(q *question) {
			q.policy.Bounds = append(q.policy.Bounds, Bound{Cause: LimitMax, Most: 520 * mib})
		}, LimitMax},
		"a quota with nothing left": {func(q *question) {
			q.policy.Shares = append(q.policy.Shares, Share{ResourceQuota, mib})
		}, ResourceQuota},
		"half of a node's memory, lent before": {func(q *question) {
			q.loans = []Loan{ago(time.Minute)} // of 512 MiB
			q.policy.Shares = []Share{{NodeFull, 256 * mib}}
		}, NodeFull},
		"limit.max allows a little": {func(q *question) {
			q.policy.Bounds = append(q.policy.Bounds, Bound{Cause: LimitMax, Most: 540 * mib})
		}, ""},
	} {
		q := lent()
		c.change(&q)
		loan, refusal := q.ask()
		var got Cause
		if refusal != nil {
			got = refusal.Cause
		}
		if got != c.want || (loan == nil) == (refusal == nil) {
			t.Errorf("%s: refused for %q, want %q (%+v)", name, got, c.want, loan)
		}
	}
}

func TestLoans(t *testing.T) {
	earlier := []Loan{{Container: "app", At: start.Add(-time.Minute), From: limitOf(256), To: limitOf(300)}}
	for name, c := range map[string]struct {
		limit, growth, most, left, want memory.Bytes
		loans                           []Loan
	}{
		"four times the limit":             {limit: 512 * mib, growth: 10 * mib, want: 2048 * mib},
		"whatever the growth":              {limit: 128 * mib, growth: 400 * mib, want: 512 * mib},
		"four times the one before a loan": {limit: 300 * mib, growth: 10 * mib, want: 1024 * mib, loans: earlier},
		"whole MiB":                        {limit: 110*mib + 1, growth: mib, want: 440 * mib},
		"as much as bounds allow":          {limit: 512 * mib, growth: 10 * mib, most: 600*mib + 7, want: 600 * mib},
		"half of what is left":             {limit: 512 * mib, growth: 10 * mib, left: 200 * mib, want: 612 * mib},
		"half of what was left": {
			limit: 300 * mib, growth: 10 * mib, left: 200 * mib, want: 378 * mib, loans: earlier, // (200 + 44) / 2
		},
	} {
		q := lent()
		q.alarm.Limit, q.known.Limit, q.known.Asked = c.limit, c.limit, c.limit
		q.alarm.PerSecond, q.alarm.Demand = c.growth, c.limit-mib
		q.alarm.Left = timeTo(mib, c.growth)
		if c.most > 0 {
			q.policy.Bounds = append(q.policy.Bounds, Bound{Cause: LimitMax, Most: c.most})
		}
		if c.left > 0 {
			q.policy.Shares = append(q.policy.Shares, Share{ResourceQuota, c.left})
		}
		q.loans = c.loans
		loan, refusal := q.ask()
		if loan == nil || loan.From.Limit != c.limit || loan.To.Limit != c.want || !loan.Returned.IsZero() {
			t.Errorf("%s: %+v (%+v), want %s", name, loan, refusal, c.want)
		}
	}
}

// TestUnsent: a loan that was written down and not sent is given once more, as it was.
func TestUnsent(t *testing.T) {
	q := lent()
	first, _ := q.ask()
	q.loans, q.known.Handled, q.now = []Loan{*first}, 7, start.Add(time.Second)
	if again, refusal := q.ask(); again == nil || *again != *first {
		t.Errorf("%+v (%+v), want %+v", again, refusal, first)
	}
	q.known.Limit, q.known.Asked = first.To.Limit, first.To.Limit
	if again, refusal := q.ask(); again != nil || refusal.Cause != Replayed {
		t.Errorf("it was sent, and is given again: %+v (%+v)", again, refusal)
	}
}

// TestALoanThatFailedIsTheLastOfItsHour: the kubelet would not give the next one either.
func TestALoanThatFailedIsTheLastOfItsHour(t *testing.T) {
	q := lent()
	q.loans = []Loan{{Container: "app", Failed: true, Returned: start, From: limitOf(512), To: limitOf(2048)}}
	if loan, refusal := q.ask(); loan != nil || refusal.Cause != NotEffective || !refusal.Reported() {
		t.Errorf("%+v, %+v", loan, refusal)
	}
	q.loans[0].Container = "side"
	if loan, refusal := q.ask(); loan == nil {
		t.Errorf("another container's loan has failed: %+v", refusal)
	}
}

func TestEvents(t *testing.T) {
	q := lent()
	loan, _ := q.ask()
	if note := loan.Note(&q.alarm); !strings.Contains(note, "from 512Mi to 2Gi before it was reached") {
		t.Error(note)
	}
	q.policy.Bounds = []Bound{{Cause: LimitMax, Most: 512 * mib}}
	_, refusal := q.ask()
	const want = "container app reaches its limit of 512Mi in about 0.6 s (needs 452Mi, grows by 100Mi/s) and gets no " +
		"loan: sizing.limit.max of the profile allows no more: raise it, or find what grows (at most 512Mi)"
	if note := refusal.Note(); note != want {
		t.Errorf("%s\nwant %s", note, want)
	}
	q.known.Handled = 9
	_, refusal = q.ask()
	if note := refusal.Note(); note != "" || refusal.Reported() {
		t.Errorf("a replayed alarm gives an Event: %s", note)
	}
}

func TestFromAPI(t *testing.T) {
	got := FromAPI(&v1alpha1.Alarm{
		Container: "app", ContainerID: "abc", Sequence: 7, Time: metav1.NewMicroTime(start),
		Demand: resource.MustParse("452Mi"), Limit: resource.MustParse("512Mi"), GrowthPerSecond: resource.MustParse("100Mi"),
		TimeToLimitMilliseconds: 600,
	})
	if got != lent().alarm {
		t.Errorf("%+v", got)
	}
}

// TestHalfAnAlarm: one without any of its fields gets no loan, whether or not others were handled before.
func TestHalfAnAlarm(t *testing.T) {
	for _, handled := range []int64{0, 6} {
		for name, cut := range map[string]func(*Alarm){
			"instance": func(a *Alarm) { a.ID = "" }, "sequence": func(a *Alarm) { a.Sequence = 0 },
			"time": func(a *Alarm) { a.At = time.Time{} }, "demand": func(a *Alarm) { a.Demand = 0 },
			"limit": func(a *Alarm) { a.Limit = 0 }, "growth": func(a *Alarm) { a.PerSecond = 0 },
			"time left": func(a *Alarm) { a.Left = 0 },
		} {
			q := lent()
			q.known.Handled = handled
			cut(&q.alarm)
			if loan, refusal := q.ask(); loan != nil || refusal.Reported() {
				t.Errorf("without its %s: %+v, %+v", name, loan, refusal)
			}
		}
	}
}

// TestBounds: whatever is claimed, a loan keeps every bound, and without one there is a refusal.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	amount := func() memory.Bytes { return memory.Bytes(random.Int64N(int64(4 * memory.GiB))) }
	loans := 0
	for range 20_000 {
		q := lent()
		q.alarm.Limit = amount()
		q.known.Limit, q.known.Asked = q.alarm.Limit, q.alarm.Limit
		q.alarm.Demand = q.alarm.Limit.Minus(amount() / 64)
		q.alarm.PerSecond = amount()
		q.alarm.Left = timeTo(q.alarm.Limit.Minus(q.alarm.Demand), q.alarm.PerSecond)
		for _, cause := range []Cause{LimitMax, LimitRange, PodLimit} {
			if random.IntN(3) == 0 {
				q.policy.Bounds = append(q.policy.Bounds, Bound{Cause: cause, Most: amount()})
			}
		}
		for _, cause := range []Cause{ResourceQuota, NodeFull, ChangeBudget} {
			if random.IntN(3) == 0 {
				q.policy.Shares = append(q.policy.Shares, Share{cause, amount()})
			}
		}
		loan, refusal := q.ask()
		if (loan == nil) == (refusal == nil) {
			t.Fatalf("%+v: %+v and %+v", q, loan, refusal)
		}
		if loan == nil {
			continue
		}
		loans++
		if loan.To.Limit <= loan.From.Limit || loan.To.Limit > loan.From.Limit.Percent(MaxPercent) {
			t.Fatalf("%+v: from %s to %s", q, loan.From.Limit, loan.To.Limit)
		}
		for _, b := range q.policy.Bounds {
			if loan.To.Limit > b.Most {
				t.Fatalf("%+v: %s is above %s (%s)", q, loan.To.Limit, b.Most, b.Cause)
			}
		}
		for _, r := range q.policy.Shares {
			if loan.Extra() > r.Left/2 {
				t.Fatalf("%+v: %s is more than half of %s (%s)", q, loan.Extra(), r.Left, r.Cause)
			}
		}
	}
	if loans < 1000 {
		t.Errorf("%d loans: this test tries the wrong thing", loans)
	}
}

// FuzzDecide: an agent claims anything. A loan is of the instance and limit that the manager knows, within all bounds.
func FuzzDecide(f *testing.F) {
	f.Add("abc", int64(7), int64(0), int64(452<<20), int64(512<<20), int64(100<<20), int32(600))
	f.Add("abc", int64(7), int64(-1<<62), int64(-5), int64(1<<62), int64(-1), int32(-1))
	f.Fuzz(func(t *testing.T, id string, sequence, behind, demand, limit, growth int64, milliseconds int32) {
		q := lent()
		a := v1alpha1.Alarm{
			Container: "app", ContainerID: id, Sequence: sequence,
			Time:   metav1.NewMicroTime(start.Add(time.Duration(behind))),
			Demand: *resource.NewQuantity(demand, resource.BinarySI), Limit: *resource.NewQuantity(limit, resource.BinarySI),
			GrowthPerSecond:         *resource.NewQuantity(growth, resource.BinarySI),
			TimeToLimitMilliseconds: milliseconds,
		}
		left := time.Duration(milliseconds) * time.Millisecond
		budget.Check(t, budget.Budget{Bytes: 64 << 10, CPU: time.Second}, len(id), func() {
			q.alarm = FromAPI(&a)
			loan, refusal := q.ask()
			switch {
			case (loan == nil) == (refusal == nil):
				t.Errorf("%+v: %+v and %+v", a, loan, refusal)
			case refusal != nil && (refusal.Left < 0 || refusal.Left > max(left, 0)):
				t.Errorf("%+v: %s left", a, refusal.Left)
			case loan == nil:
			case id != q.known.ID || loan.From.Limit > q.known.Limit+pageSize || sequence <= q.known.Handled ||
				loan.To.Limit <= loan.From.Limit || loan.To.Limit > min(64*memory.GiB, 4*(q.known.Limit+pageSize)+mib):
				t.Errorf("%+v: %+v", a, loan)
			}
		})
	})
}
