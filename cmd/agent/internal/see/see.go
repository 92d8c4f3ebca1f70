// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package see

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/glibc"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/pagemap"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/live"
)

// Explainer attributes the memory of one container after the other. [Explainer.Run] does the work.
type Explainer struct {
	proc    string // "/proc"
	cgroups cgroup.Version
	readers []attribution.Reader
	now     func() time.Time
	jobs    chan scan.Look
	urgent  chan scan.Look
	files   detect.Cache                       // what was found in programs and libraries, by namespace
	cmdline []byte                             // for one command line after the other
	known   map[program]*v1alpha1.RuntimeFound // what runs in processes that were looked into before
	found   chan scan.Finding
	ready   atomic.Int32 // for which look, one of these
	rest    rest
}

// What the Explainer would take.
const (
	nothing = iota
	whatIsUrgent
	everything
)

// New returns an Explainer that reads below a folder that is a /proc, with these readers, on a node with this version
// of cgroups.
func New(proc string, v cgroup.Version, readers []attribution.Reader, now func() time.Time) *Explainer {
	return &Explainer{
		proc: proc, cgroups: v, readers: readers, now: now, jobs: make(chan scan.Look),
		urgent: make(chan scan.Look),
		known:  map[program]*v1alpha1.RuntimeFound{},
		found:  make(chan scan.Finding, 1),
	}
}

// Ready tells whether a look would be taken now.
func (e *Explainer) Ready(urgent bool) bool {
	ready := e.ready.Load()
	return ready == everything || urgent && ready == whatIsUrgent
}

// Start hands a container over, and says whether it is looked into now. What is urgent does not wait for all of the
// rest after the look before.
func (e *Explainer) Start(look scan.Look) bool {
	to := e.jobs
	if look.Urgent {
		to = e.urgent
	}
	select {
	case to <- look:
		return true
	default:
		return false
	}
}

// Found is what was found.
func (e *Explainer) Found() <-chan scan.Finding { return e.found }

const (
	// explainMost is how long one container may take. The largest of the research took 0.4 s.
	explainMost = 5 * time.Second
	// processesMost of a container are looked into: the largest. Of others is told how much is resident in them.
	processesMost = 32
)

// Run works until ctx ends, on a thread of its own, so that its rest follows from the processor time of a look: on a
// busy node looks take long without costing more.
func (e *Explainer) Run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var last, sum time.Duration // what the look before and all looks took
	for {
		e.rest.note(e.now(), sum, scan.ProcessTime())
		j, ok := e.next(ctx, last)
		if !ok {
			return
		}
		began := scan.ThreadTime()
		finding := e.explain(ctx, j)
		last = scan.ThreadTime() - began
		sum += last
		select {
		case e.found <- finding:
		case <-ctx.Done():
			return
		}
	}
}

// next waits for something to do, after a rest that depends on what the look before took.
func (e *Explainer) next(ctx context.Context, last time.Duration) (j scan.Look, ok bool) {
	defer e.ready.Store(nothing)
	urgently, normally := e.rest.after(last)
	soon, later := time.NewTimer(urgently), time.NewTimer(normally)
	defer soon.Stop()
	defer later.Stop()
	var urgent, all <-chan scan.Look // nil while it rests
	for {
		select {
		case <-ctx.Done():
			return scan.Look{}, false
		case <-soon.C:
			urgent = e.urgent
			e.ready.CompareAndSwap(nothing, whatIsUrgent)
		case <-later.C:
			urgent, all = e.urgent, e.jobs
			e.ready.Store(everything)
		case j = <-urgent:
			return j, true
		case j = <-all:
			return j, true
		}
	}
}

// explain adds up the processes of a container. What could not be read of those that are there is unexplained.
func (e *Explainer) explain(ctx context.Context, j scan.Look) scan.Finding {
	ctx, cancel := context.WithTimeout(ctx, explainMost)
	defer cancel()
	sum := newSum()
	sum.limit, sum.drawn, sum.more = j.Limit, j.Drawn, j.More
	var failed error
	for i, pid := range e.largestFirst(j.PIDs) {
		err := errManyProcesses
		if i < processesMost {
			err = e.process(ctx, j.Namespace, pid, sum)
		}
		if err == nil || errors.Is(err, procmem.ErrGone) {
			continue
		}
		if resident := e.resident(pid); resident > 0 {
			sum.unread(resident)
			if failed == nil { // the others mostly failed like the first
				failed = err
			}
		}
	}
	if sum.processes == sum.missed {
		return scan.Finding{Container: j.Container, Err: errors.Join(errNoProcess, failed)}
	}
	finding := scan.Finding{
		Container: j.Container, Memory: sum.parts(e.now()), Runtime: sum.runtime, Unread: sum.why(failed),
	}
	if j.Drawn {
		finding.Map = drawn(sum.pages, sum.missing, e.now())
	}
	return finding
}

var (
	errNoProcess     = errors.New("no process of it could be read")
	errManyProcesses = fmt.Errorf("only the %d largest are inspected", processesMost)
)

// largestFirst puts the processes in which most is resident first, where there are more than are looked into.
func (e *Explainer) largestFirst(pids []int) []int {
	if len(pids) <= processesMost {
		return pids
	}
	resident := make(map[int]memory.Bytes, len(pids))
	for _, pid := range pids {
		resident[pid] = e.resident(pid)
	}
	pids = slices.Clone(pids)
	slices.SortStableFunc(pids, func(a, b int) int { return cmp.Compare(resident[b], resident[a]) })
	return pids
}

// resident is what the kernel counts for a process; 0: it has ended, or gave its memory back and is about to.
func (e *Explainer) resident(pid int) memory.Bytes {
	status, err := procmem.StatusOf(os.DirFS(e.proc), pid)
	if err != nil {
		return 0
	}
	return status.RSS
}

// process adds the memory of one process to the sum. What runs in the container is what runs in its largest process:
// the first is often a shell that started it.
func (e *Explainer) process(ctx context.Context, namespace string, pid int, sum *sum) error {
	if err := ctx.Err(); err != nil { // opening and listing its mappings take their time, too
		return err
	}
	target, err := live.Open(e.proc, pid)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer target.Close()
	s, err := attribution.Take(target)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	s.Locate = sum.drawn
	result, err := attribution.Attribute(ctx, s, e.readers)
	if err != nil {
		return fmt.Errorf("attributing: %w", err)
	}
	sum.add(&result, s)
	if sum.drawn {
		sum.pages = append(sum.pages, pages(&result, s, int32(sum.processes))...) //nolint:gosec // thousands at most
	}
	if result.RSS > sum.largest {
		sum.largest, sum.exe = result.RSS, s.Process.Exe
		sum.runtime = withHeap(e.runtimeOf(namespace, target, s), result.Usages)
	}
	return nil
}

// sum is what the processes of one container have together. Pages that they share count for each.
type sum struct {
	processes        int
	missed           int          // of them: they are there and could not be read
	missing          memory.Bytes // what is resident in those
	more             bool         // there may be processes that nobody has listed
	rss, unexplained memory.Bytes
	byName           map[string]*partSum
	coverage         float64                // the least of all readers; 0 where one could make nothing of its heap
	largest          memory.Bytes           // RSS of the largest process
	exe              string                 // of that
	runtime          *v1alpha1.RuntimeFound // of that
	limit            memory.Bytes           // of the container; 0: none
	levers           []levers.Process
	programs         []string // of levers
	drawn            bool     // with pages
	pages            []pagemap.Region
}

func newSum() *sum {
	return &sum{byName: map[string]*partSum{}, coverage: 1}
}

func (s *sum) add(r *attribution.Result, of *attribution.Snapshot) {
	s.processes++
	s.rss, s.unexplained = s.rss.Plus(r.RSS), s.unexplained.Plus(r.Unexplained)
	for kind, resident := range r.ByKind() {
		if kind != attribution.Other {
			s.part(kind).add(resident, 0)
		}
	}
	unread := false
	for _, f := range r.Failed {
		if !errors.Is(f.Err, glibc.ErrNone) { // a program that never calls malloc has no arena
			s.coverage, unread = 0, true
		}
	}
	for i := range r.Usages {
		u := &r.Usages[i]
		s.coverage = min(s.coverage, u.Coverage)
		if kind, ok := whereFree(r, u.Reader); ok {
			s.part(kind).add(0, u.FreeResident)
		}
	}
	s.levers = append(s.levers, levers.Process{
		RSS: r.RSS, Usages: r.Usages, Unread: unread, Env: of.Env,
	})
	s.programs = append(s.programs, of.Process.Exe)
}

// unread adds a process that could not be read. Where it is the largest, nobody knows what runs in the container.
func (s *sum) unread(resident memory.Bytes) {
	s.processes++
	s.missed++
	s.missing = s.missing.Plus(resident)
	s.rss, s.unexplained = s.rss.Plus(resident), s.unexplained.Plus(resident)
	s.levers, s.programs = append(s.levers, levers.Process{RSS: resident, Unread: true}), append(s.programs, "")
	if resident > s.largest {
		s.largest, s.exe, s.runtime = resident, "", nil
	}
}

// why says what could not be read; empty: all could.
func (s *sum) why(failed error) string {
	var out []string
	if s.missed > 0 {
		out = append(out, fmt.Sprintf("%d of %d processes, with %s resident, could not be read: %v", s.missed, s.processes,
			s.missing, failed))
	}
	if s.more {
		out = append(out, fmt.Sprintf("it has more processes or cgroups than the %d that are listed", s.processes))
	}
	return strings.Join(out, "; ")
}

// explained is the share of what is resident that is in a part. A heap that no reader knows, such as .NET's, is in
// none, and nobody knows what of it is free.
func (s *sum) explained() float64 {
	if s.more {
		return 0
	}
	if s.rss == 0 {
		return 1
	}
	return float64(s.rss.Minus(s.unexplained)) / float64(s.rss)
}

const (
	partsMost = 24 // as in the API
	gainsMost = 8
	helpsMost = 512
)

func (s *sum) parts(now time.Time) *v1alpha1.MemoryParts {
	out := &v1alpha1.MemoryParts{
		Time: metav1.NewTime(now.Truncate(time.Second)), Resident: s.rss.Quantity(), Unexplained: s.unexplained.Quantity(),
		Processes:       int32(min(s.processes, 1<<30)), //nolint:gosec // bounded
		CoveragePercent: int32(100 * min(s.coverage, s.explained())),
	}
	for name, part := range s.byName {
		if part.resident > 0 {
			out.Parts = append(out.Parts, part.api(name))
		}
	}
	slices.SortFunc(out.Parts, func(a, b v1alpha1.MemoryPart) int {
		return cmp.Or(b.Resident.Cmp(a.Resident), cmp.Compare(a.Name, b.Name))
	})
	out.Parts = folded(out.Parts)
	s.predict(out)
	return out
}

// predict says what would help, in whole KiB. What runs in the largest process runs in all that execute the same
// program.
func (s *sum) predict(out *v1alpha1.MemoryParts) {
	for i := range s.levers {
		if s.runtime != nil && s.programs[i] == s.exe {
			s.levers[i].Runtime, s.levers[i].Version = s.runtime.Type, s.runtime.Version
		}
	}
	outcome := levers.Predict(s.levers, s.limit)
	out.Helps = cut(outcome.Summary, helpsMost)
	for i := range outcome.Predictions[:min(len(outcome.Predictions), gainsMost)] {
		p := &outcome.Predictions[i]
		gain := v1alpha1.PredictedGain{
			Action: cut(p.Action, wordMost), Gain: p.Least.FloorTo(memory.KiB).Quantity(), Method: cut(p.Why, sentenceMost),
			How: cut(p.How, sentenceMost), Setting: cut(p.Knob, wordMost),
		}
		if !p.Exact() {
			most := p.Most.CeilTo(memory.KiB).Quantity()
			gain.AtMost = &most
		}
		if p.Limit > 0 {
			limit := p.Limit.Quantity()
			gain.Limit = &limit
		}
		out.Gains = append(out.Gains, gain)
	}
}

// folded puts what is beyond the bound into one part, so that the parts still add up.
func folded(parts []v1alpha1.MemoryPart) []v1alpha1.MemoryPart {
	if len(parts) <= partsMost {
		return parts
	}
	rest := resource.Quantity{Format: resource.BinarySI}
	for i := partsMost - 1; i < len(parts); i++ {
		rest.Add(parts[i].Resident)
	}
	return append(parts[:partsMost-1:partsMost-1], v1alpha1.MemoryPart{Name: "smaller parts", Resident: rest})
}
