// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/rollout"
)

const (
	// programsKept bounds the programs of a container name: the current one, its predecessor, and one more to roll back
	// to. If more programs run, memfit does not manage the pods of the others (see [State.programsToKeep]).
	programsKept = 3
	// kinKept bounds [evidence.Kin]. Kills matter for hours, so a few releases are enough.
	kinKept = 4
	// ownersDay is how long sizes stay at or above a new size of the owner: a full daily cycle of load.
	ownersDay = period.Day
)

// evidence is the data about one program in one container. The checkpoint stores it beside the history.
type evidence struct {
	// Program is the fingerprint of the program (see [inject.Program]); empty if memfit has not seen a pod yet.
	Program string `json:"p,omitempty"`
	// Owner is the size that the workload's owner set. Since is the creation of the first pod with this size.
	Owner memory.Size `json:"o,omitzero"`
	Since time.Time   `json:"s,omitzero"`
	// Seen is when a pod with this program last existed and was not being deleted.
	Seen time.Time `json:"t,omitzero"`
	// Kin lists this program and the programs that it replaced with an unchanged Owner. Their kills count for it.
	Kin []string `json:"k,omitempty"`
	// Running is the largest size of the running pods that were created with Owner. It remains when no pod runs.
	Running memory.Size `json:"h,omitzero"`
	// HighestLimit is the highest limit in Running so far, and HighestAt is when memfit first saw it.
	HighestLimit memory.Bytes `json:"m,omitempty"`
	HighestAt    time.Time    `json:"a,omitzero"`
	// Size is the last recommended size; zero: none.
	Size memory.Size `json:"d,omitzero"`
	// Runs are the last runs, oldest first, if the workload's pods run to completion.
	Runs []run `json:"r,omitempty"`
	// Predecessor describes the replaced program if Owner changed with the program; zero otherwise.
	Predecessor predecessor `json:"b,omitzero"`
	history     *history.Container
}

// predecessor is the recommended limit of a replaced program and the length of its history.
type predecessor struct {
	Limit memory.Bytes  `json:"l,omitempty"`
	Span  time.Duration `json:"s,omitempty"`
}

// floor returns a lower bound of the limit until the history is as long as the predecessor's was. The bound is the
// predecessor's recommended limit, but at most the owner's limit; 0: no bound.
func (e *evidence) floor() memory.Bytes {
	if e.history.Span() >= e.Predecessor.Span {
		return 0
	}
	if e.Owner.Limit == 0 {
		return e.Predecessor.Limit
	}
	return min(e.Owner.Limit, e.Predecessor.Limit)
}

// predecessor returns the description of e for the program that replaces it.
func (e *evidence) predecessor() predecessor {
	p := predecessor{e.Size.Limit, min(e.history.Span(), (history.DaysKept * period.Day).Duration())}
	if e.floor() > 0 {
		p.Limit, p.Span = max(p.Limit, e.Predecessor.Limit), max(p.Span, e.Predecessor.Span)
	}
	return p
}

// ownerSizeNew reports whether the owner's size is younger than [ownersDay].
func (e *evidence) ownerSizeNew(now time.Time) bool {
	return now.Before(e.Since.Add(ownersDay.Duration()))
}

// countsKillsOf reports whether a kill of the given program counts as evidence about e's program.
func (e *evidence) countsKillsOf(program string) bool {
	return program == "" || e.Program == "" || slices.Contains(e.Kin, program)
}

// evidenceOf returns the evidence of a program in a container; nil: none.
func (st *State) evidenceOf(container, program string) *evidence {
	for _, e := range st.containers[container] {
		if e.Program == program {
			return e
		}
	}
	return nil
}

// newest returns the evidence of the newest pod's program; nil: none.
func (st *State) newest(container string) *evidence {
	if all := st.containers[container]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// historyOf returns the history of an instance's program; nil: the program is not known for certain.
func (st *State) historyOf(in *instance, container string) *history.Container {
	if e := st.evidenceOf(container, in.program); e != nil {
		return e.history
	}
	if len(st.containers[container]) > 1 || in.program != "" {
		return nil
	}
	return st.History(container)
}

// readPrograms reads the programs and the owner's sizes from the pods. Call it before recording kills or samples.
func (st *State) readPrograms(s *Snapshot, now time.Time) {
	st.completes = s.isRun(s.Template)
	pods, governed := s.Pods, s.Governed
	if len(governed) == 0 && s.Template != nil { // pods that live for seconds may have ended before they were first seen
		governed = []*corev1.Pod{s.Template}
		pods = append(slices.Clip(pods), s.Template)
	}
	st.programs = make(map[instanceKey]inject.Program, len(pods))
	for i, pod := range pods {
		for _, name := range ContainersOf(&pod.Spec) {
			key := instanceKey{pod.UID, name}
			if i > 0 && alike(pod, pods[i-1]) { // usually true, and reading a record is expensive
				st.programs[key] = st.programs[instanceKey{pods[i-1].UID, name}]
			} else {
				st.programs[key] = inject.ProgramOf(pod, name, s.perRun())
			}
		}
	}
	st.inheritFrom(s.Earlier, governed, now)
	run := st.running(governed)
	for _, name := range slices.Sorted(maps.Keys(run)) {
		st.keepPrograms(name, run[name], now)
	}
	st.readOwnerSizes(governed, now)
	for key, in := range st.instances {
		in.program = cmp.Or(st.programs[key].ID, in.program)
	}
	st.recordRunningSizes(s.Governed, now)
	st.recordNodes(s, now)
	st.recordRefused(s, now)
}

// running is a program of existing pods.
type running struct {
	program string
	oldest  *corev1.Pod
	pods    int // without terminating pods
}

// running returns the programs of existing pods by container name, starting with the newest pod's program.
func (st *State) running(newestFirst []*corev1.Pod) map[string][]running {
	run := map[string][]running{}
	for _, pod := range newestFirst {
		for _, name := range ContainersOf(&pod.Spec) {
			program, all := st.programID(pod.UID, name), run[name]
			i := slices.IndexFunc(all, func(r running) bool { return r.program == program })
			if i < 0 {
				i, all = len(all), append(all, running{program: program})
				run[name] = all
			}
			if all[i].oldest = pod; pod.DeletionTimestamp == nil {
				all[i].pods++
			}
		}
	}
	return run
}

// programsToKeep returns at most programsKept programs of a container name: the newest pod's program, then other
// running programs, then the programs that ran last. Running programs with evidence come before those without, because
// programs that displaced each other at every step would never collect evidence. Then those with the most pods come
// first.
func (st *State) programsToKeep(name string, run []running) []string {
	all := slices.Clone(run)
	for _, e := range st.containers[name] {
		if !slices.ContainsFunc(run, func(r running) bool { return r.program == e.Program }) {
			all = append(all, running{program: e.Program})
		}
	}
	rank := func(r running) (rank int, seen time.Time) {
		if e := st.evidenceOf(name, r.program); e != nil {
			rank, seen = 1, e.Seen
		}
		return rank + 2*min(r.pods, 1), seen
	}
	slices.SortStableFunc(all[1:], func(a, b running) int {
		rankA, seenA := rank(a)
		rankB, seenB := rank(b)
		return cmp.Or(cmp.Compare(rankB, rankA), cmp.Compare(b.pods, a.pods), seenB.Compare(seenA))
	})
	var programs []string
	for _, r := range head(all, programsKept) {
		programs = append(programs, r.program)
	}
	return programs
}

// keepPrograms creates the evidence of new programs of a container name, and drops programs that are not kept.
func (st *State) keepPrograms(name string, run []running, now time.Time) {
	kept := st.programsToKeep(name, run)
	for _, r := range slices.Backward(run) { // oldest first, to put the newest in front
		if !slices.Contains(kept, r.program) {
			continue
		}
		if e := st.ensureEvidence(r.oldest, name, now); r.pods > 0 || e.Seen.IsZero() {
			e.Seen = now.UTC().Truncate(time.Second)
		}
	}
	st.containers[name] = slices.DeleteFunc(st.containers[name], func(e *evidence) bool {
		forgotten := !slices.Contains(kept, e.Program)
		if forgotten {
			st.rollout.ForgetLowerings(rollout.Key{Container: name, Program: e.Program})
		}
		return forgotten
	})
}

// readOwnerSizes sets the owner's size of each program from its newest pod, and Since from the oldest pod with the same
// size.
func (st *State) readOwnerSizes(newestFirst []*corev1.Pod, now time.Time) {
	read := map[*evidence]bool{}
	for _, pod := range newestFirst {
		for _, name := range ContainersOf(&pod.Spec) {
			p, since := st.programIn(pod, name), createdAt(pod, now)
			e := st.evidenceOf(name, p.ID)
			switch {
			case e == nil: // not kept
				continue
			case !read[e] && e.Owner != p.Owner:
				e.Owner, e.Since, e.Running, e.HighestLimit, e.Size = p.Owner, since, memory.Size{}, 0, memory.Size{}
				st.rollout.ForgetLowerings(rollout.Key{Container: name, Program: e.Program})
			case e.Owner == p.Owner && since.Before(e.Since):
				e.Since = since
			}
			read[e] = true
		}
	}
}

// programIn returns the program of a container of a pod. If the pod has no record of the owner's size and was resized,
// it uses the size in the evidence.
func (st *State) programIn(pod *corev1.Pod, name string) inject.Program {
	p := st.programs[instanceKey{pod.UID, name}]
	if p.Recorded || !inject.WasResized(pod) {
		return p
	}
	p.Owner = memory.Size{}
	if e := st.evidenceOf(name, p.ID); e != nil {
		p.Owner = e.Owner
	}
	return p
}

// knowsOwner reports whether the owner's size is known. A known size may be unset.
func (st *State) knowsOwner(pod *corev1.Pod, name string) bool {
	return st.programs[instanceKey{pod.UID, name}].Recorded || !inject.WasResized(pod)
}

// createdAt returns the creation time of a pod, but at most now, because the API server's clock may be ahead.
func createdAt(pod *corev1.Pod, now time.Time) time.Time {
	if created := pod.CreationTimestamp.UTC(); created.Before(now) {
		return created
	}
	return now.UTC().Truncate(time.Second)
}

// ensureEvidence returns the evidence of a pod's program, and makes it the newest of its container. A new program
// inherits the evidence of the newest program if the owner's size is equal. Otherwise it starts empty with a
// Predecessor.
func (st *State) ensureEvidence(pod *corev1.Pod, name string, now time.Time) *evidence {
	p := st.programIn(pod, name)
	e, before := st.evidenceOf(name, p.ID), st.newest(name)
	switch {
	case e == nil && before != nil && before.Program == "": // evidence from before memfit saw a pod
		e, before.Program, before.Kin = before, p.ID, []string{p.ID}
		if e.Owner = p.Owner; e.Since.IsZero() {
			e.Since = createdAt(pod, now)
		}
	case e == nil && before != nil && before.Owner == p.Owner:
		st.rollout.Inherit(rollout.Key{Container: name, Program: before.Program}, p.ID)
		inherited, copiedHistory := *before, *before.history
		e = &inherited
		e.Program, e.Seen, e.Runs, e.history = p.ID, time.Time{}, slices.Clone(before.Runs), &copiedHistory
		e.Kin = append([]string{p.ID}, head(before.Kin, kinKept-1)...)
	case e == nil:
		e = &evidence{
			Program: p.ID, Owner: p.Owner, Since: createdAt(pod, now), Kin: []string{p.ID}, history: history.New(),
		}
		if before != nil {
			e.Predecessor = before.predecessor()
		}
	}
	others := slices.DeleteFunc(slices.Clone(st.containers[name]), func(other *evidence) bool { return other == e })
	st.containers[name] = append([]*evidence{e}, others...)
	return e
}

// recordRunningSizes updates Running and HighestLimit of each program. It ignores unscheduled pods, pods with an
// earlier owner's size, and pods that another writer resized.
func (st *State) recordRunningSizes(governed []*corev1.Pod, now time.Time) {
	for name, all := range st.containers {
		for _, e := range all {
			var largest memory.Size
			unlimited := false
			for _, pod := range governed {
				if st.programID(pod.UID, name) != e.Program || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil ||
					resizedByOther(pod) || st.programIn(pod, name).Owner != e.Owner {
					continue
				}
				if spec, _ := constraints.Find(pod, name); spec != nil {
					size := constraints.SizeOf(&spec.Resources)
					if from, _, lent := st.rollout.LoanSizes(pod.UID, name); lent {
						size = from // without the loan
					}
					largest, unlimited = largest.Max(size), unlimited || size.Limit == 0
				}
			}
			if unlimited {
				largest.Limit = 0
			}
			if largest != (memory.Size{}) {
				e.Running = largest
			}
			if largest.Limit > e.HighestLimit {
				e.HighestLimit, e.HighestAt = largest.Limit, now.UTC().Truncate(time.Second)
			}
		}
	}
}

// ProgramOf returns the program of a running or killed container; empty: unknown.
func (st *State) ProgramOf(c memory.ContainerRef) string {
	program := st.programs[keyOf(&c)].ID
	if in := st.instance(&c); in != nil {
		return cmp.Or(program, in.program)
	}
	return program
}

// programID returns the program of a container of a pod; empty: unknown.
func (st *State) programID(pod types.UID, container string) string {
	return st.programs[instanceKey{pod, container}].ID
}

func (st *State) podsOfProgram(pods []*corev1.Pod, container, program string) []*corev1.Pod {
	var matching []*corev1.Pod
	for _, pod := range pods {
		if st.programID(pod.UID, container) == program {
			matching = append(matching, pod)
		}
	}
	return matching
}

func (e *evidence) pack(name string) (v1alpha1.CheckpointContainer, error) {
	data, err := e.history.MarshalBinary()
	if err != nil {
		return v1alpha1.CheckpointContainer{}, err
	}
	encoded, err := json.Marshal(e)
	return v1alpha1.CheckpointContainer{Name: name, History: data, Evidence: encoded}, err
}

// unpackEvidence decodes the output of pack. On error, it returns what could be decoded.
func unpackEvidence(packed *v1alpha1.CheckpointContainer) (*evidence, error) {
	e := &evidence{history: history.New()}
	err := e.history.UnmarshalBinary(packed.History)
	if err == nil && e.history.Samples() > 0 && e.history.Factor() != period.Factor() {
		err = fmt.Errorf("%w: %d, and now %d (--lab-compress-evidence)", period.ErrFactor, e.history.Factor(),
			period.Factor())
	}
	if err != nil {
		e.history = history.New()
	}
	if len(packed.Evidence) == 0 {
		return e, err
	}
	if jsonErr := json.Unmarshal(packed.Evidence, e); jsonErr != nil {
		return &evidence{history: e.history}, errors.Join(err, jsonErr)
	}
	e.Kin, e.Runs = head(e.Kin, kinKept), head(e.Runs, runsKept)
	return e, err
}

// runsKept bounds the runs of a program: a month of daily runs takes about 800 bytes.
const runsKept = 30

// run is one pod that runs to completion.
type run struct {
	ID   uint32       `json:"i"` // a hash of the pod's UID
	Peak memory.Bytes `json:"p"`
}

func runID(pod types.UID) uint32 {
	h := fnv.New32a()
	h.Write([]byte(pod))
	return h.Sum32()
}

// withRun returns runs with the demand of the run id, which is added if missing.
func withRun(runs []run, id uint32, demand memory.Bytes) []run {
	i := slices.IndexFunc(runs, func(r run) bool { return r.ID == id })
	if i < 0 {
		runs = append(runs, run{ID: id})
		runs = runs[max(len(runs)-runsKept, 0):]
		i = len(runs) - 1
	}
	runs[i].Peak = max(runs[i].Peak, demand)
	return runs
}

// peaks returns the peak of each run. The peak of a killed run is at least its limit.
func peaks(runs []run, kills []memory.OOMKill) []memory.Bytes {
	if len(runs) == 0 {
		return nil
	}
	runs = slices.Clone(runs)
	for _, k := range kills {
		if k.Kind != memory.OOMPodLimit && k.Kind != memory.OOMHeapAbort {
			runs = withRun(runs, runID(k.Container.UID), k.Limit)
		}
	}
	all := make([]memory.Bytes, len(runs))
	for i := range runs {
		all[i] = runs[i].Peak
	}
	return all
}
