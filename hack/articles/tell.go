// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

const (
	readyMost = 6 * time.Minute // a busy machine starts eight programs at once
	// lookMost is how long memfit's agent may take to inspect a container, once it was asked to, and to write that down.
	lookMost = 3 * time.Minute
	// sizedFor is how long after its answer the recommendation for an arm is followed: a request is what has been held for
	// four readings, and Go collects a program that does nothing two minutes after the last collection.
	sizedFor = 2 * time.Minute
	// askAgain is after how long it is asked again where it could not read a container: it gives up after five seconds.
	askAgain = 30 * time.Second
	// looksMost is how often it is asked where memory changes while it looks.
	looksMost = 4
	// oneMoment: RSS before and after a look differ by less than that part, and so belong to what was found.
	oneMoment = 64
	// endMost is how long a kubelet may take to say how a container ended: on a node with one processor, more than 30 s.
	endMost = 2 * time.Minute
	// stepMost is how long a step may take. The longest takes 5 min on two idle processors; a bound of 8 min was too short
	// while a kernel was compiled on the same machine.
	stepMost = 25 * time.Minute
)

// teller tells one story on a cluster.
type teller struct {
	*Cluster
	story    Story
	programs string // folder
	say      io.Writer

	mu  sync.Mutex
	run *Run
}

// tell applies a story, does its steps, and returns what was read. It leaves nothing behind.
func tell(ctx context.Context, kubectl, node, programs string, s Story, say io.Writer) (*Run, error) {
	if node != "" {
		s = s.lean()
	}
	t := &teller{
		Cluster: &Cluster{Kubectl: kubectl, Namespace: "articles-" + s.Name, Node: node}, story: s, programs: programs,
		say: say,
		run: &Run{Story: s, Said: map[string]string{}, Began: time.Now()},
	}
	defer func() {
		t.run.Took = time.Since(t.run.Began)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
		defer cancel()
		if _, err := t.Cluster.run(end, "", "delete", "namespace", t.Namespace, "--ignore-not-found"); err != nil {
			t.tell("leaves something behind: %v", err)
		}
	}()
	if err := t.apply(ctx); err != nil {
		return t.run, err
	}
	pods, err := t.started(ctx)
	if err != nil {
		return t.run, err
	}
	for _, phase := range phases(s.Steps) {
		if err := t.phase(ctx, phase, pods); err != nil {
			return t.run, err
		}
	}
	return t.run, nil
}

// phases are steps that an arm takes one after the other without waiting for the other arms: what memfit predicts of
// an action is about the memory of that moment, and not of when the slowest arm is done.
func phases(steps []Step) (all [][]Step) {
	for _, step := range steps {
		if n := len(all); step.Predicted && n > 0 {
			all[n-1] = append(all[n-1], step)
		} else {
			all = append(all, []Step{step})
		}
	}
	return all
}

func (t *teller) tell(format string, args ...any) {
	fmt.Fprintf(t.say, "%s  %s: %s\n", time.Now().Format(time.TimeOnly), t.story.Name, fmt.Sprintf(format, args...))
}

func (t *teller) apply(ctx context.Context) error {
	if _, err := t.Cluster.run(ctx, "", "delete", "namespace", t.Namespace, "--ignore-not-found"); err != nil {
		return err
	}
	if _, err := t.Cluster.run(ctx, "", "create", "namespace", t.Namespace); err != nil {
		return err
	}
	path := filepath.Join(t.programs, t.story.Program)
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() { // a folder is a Go program, which is its image
		if _, err := t.Cluster.run(ctx, "", "create", "configmap", "program", "--from-file="+path); err != nil {
			return err
		}
	}
	text, err := render(t.story, t.Node)
	if err != nil {
		return err
	}
	_, err = t.Cluster.run(ctx, text, "apply", "-f", "-")
	return err
}

// started waits for the first pod of each arm. A program that cannot even start is a result where it may die.
func (t *teller) started(ctx context.Context) (map[string]string, error) {
	ctx, cancel := within(ctx, readyMost, "pods that are ready")
	defer cancel()
	names := map[string]string{}
	for _, arm := range t.story.Arms {
		err := await(ctx, func() (bool, error) {
			pods, err := t.pods(ctx, arm.Name)
			if err != nil || len(pods) < max(arm.Replicas, 1) {
				return false, err
			}
			first := &pods[0]
			if arm.MayDie && restarts(first) > 0 {
				names[arm.Name] = first.Name
				t.keep(Reading{Arm: arm.Name, Step: "start", Pod: first.Name, Dead: ended(first)})
				return true, nil
			}
			if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !ready(&p) }) {
				return false, nil
			}
			names[arm.Name] = first.Name
			values, err := t.ask(ctx, first.Name, "stats")
			if err == nil {
				t.keep(Reading{Arm: arm.Name, Step: "start", Pod: first.Name, Values: values})
			}
			return err == nil, err
		})
		if err != nil {
			return nil, fmt.Errorf("the pods of %s do not get ready: %w", arm.Name, err)
		}
	}
	t.tell("%d pods run after %s", len(names), time.Since(t.run.Began).Round(time.Second))
	return names, nil
}

func (t *teller) keep(r Reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run.Readings = append(t.run.Readings, r)
}

// dead says how an arm ended in an earlier step.
func (t *teller) dead(arm string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.run.Readings {
		if r.Arm == arm && r.Dead != "" {
			return r.Dead
		}
	}
	return ""
}

// phase takes all arms through its steps at the same time.
func (t *teller) phase(ctx context.Context, steps []Step, pods map[string]string) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var group sync.WaitGroup
	for _, arm := range t.story.Arms {
		group.Go(func() {
			for _, step := range steps {
				if step.Arms != nil && !slices.Contains(step.Arms, arm.Name) {
					continue
				}
				if err := t.step(ctx, step, arm, pods[arm.Name]); err != nil {
					fail(fmt.Errorf("%s: %w", step.Name, err)) // the others need not go on: the first says why
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// step does one step in one arm.
func (t *teller) step(ctx context.Context, step Step, arm Arm, pod string) error {
	ctx, cancel := within(ctx, stepMost+step.Settle+lookMost+sizedFor, "all of "+arm.Name)
	defer cancel()
	began := time.Now()
	if err := t.one(ctx, step, arm, pod); err != nil {
		return err
	}
	t.tell("%s of %s took %s", step.Name, arm.Name, time.Since(began).Round(time.Second))
	if t.story.Look == (Place{arm.Name, step.Name}) {
		t.learn(ctx, pod)
	}
	return nil
}

// lookAgain is how long memfit has to say all that is needed: an author does not come within the second.
const lookAgain = 90 * time.Second

// learn asks memfit what its author would have, again until all that is needed is said or the time is up.
func (t *teller) learn(ctx context.Context, pod string) {
	for began := time.Now(); ; {
		t.look(ctx, pod)
		answers, verdict := answersFor(t.run, pod)
		silent := slices.ContainsFunc(answers, func(a Answer) bool { return a.Line == "" })
		if !silent || time.Since(began) > lookAgain {
			t.tell("%s, after %s: %s", pod, time.Since(began).Round(time.Second), verdict)
			if silent {
				t.tell("all of its output:\n%s", t.run.Said["kubectl memfit why pod/"+pod])
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
	}
}

func (t *teller) one(ctx context.Context, step Step, arm Arm, pod string) error {
	r := Reading{Arm: arm.Name, Step: step.Name, Pod: pod}
	if was := t.dead(arm.Name); was != "" {
		return nil // it was told; the container that was started again is another one
	}
	if step.Predicted {
		before := Reading{Arm: arm.Name, Step: beforeStep(step.Name), Pod: pod}
		var err error
		if before.Look, before.Values, err = t.inspected(ctx, pod); err != nil {
			return fmt.Errorf("%s before it: %w", arm.Name, err)
		}
		t.keep(before)
	}
	values, err := t.ask(ctx, pod, step.Path)
	answered := time.Now()
	if err == nil && step.Settle > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step.Settle):
		}
		var after map[string]float64
		if after, err = t.ask(ctx, pod, "stats"); err == nil {
			values["rss"] = after["rss"]
		}
	}
	if err != nil {
		how := t.end(ctx, arm.Name, pod)
		if how == "" || !arm.MayDie {
			return fmt.Errorf("%s: %w; its container: %q", arm.Name, err, how)
		}
		r.Dead = how
		t.keep(r)
		return nil
	}
	r.Values = values
	if step.Inspect && (step.Inspected == nil || slices.Contains(step.Inspected, arm.Name)) {
		var now map[string]float64
		r.Look, now, err = t.inspected(ctx, pod)
		if m := (*moving)(nil); errors.As(err, &m) {
			t.tell("%s after %s: %v", arm.Name, step.Name, m)
		} else if err != nil {
			return fmt.Errorf("%s: %w", arm.Name, err)
		}
		if step.Settle > 0 {
			values["rss"] = now["rss"]
		}
		if arm.Profile != "" && step.Sized {
			if r.Asked, r.Limit, err = t.recommended(ctx, arm.Name, answered); err != nil {
				return fmt.Errorf("%s: %w", arm.Name, err)
			}
		}
	}
	t.keep(r)
	return nil
}

// end waits for the kubelet to say how the container of a pod ended.
func (t *teller) end(ctx context.Context, arm, name string) (how string) {
	ctx, cancel := context.WithTimeout(ctx, endMost)
	defer cancel()
	_ = await(ctx, func() (bool, error) {
		pods, err := t.pods(ctx, arm)
		for i := range pods {
			if pods[i].Name == name {
				how = ended(&pods[i])
			}
		}
		return how != "", err
	})
	return how
}

// moving: memory changed while it was inspected.
type moving struct{ before, seen, after float64 }

func (m *moving) Error() string {
	return fmt.Sprintf("%s were resident before memfit's agent looked, %s when it did, and %s after it", mib(m.before),
		mib(m.seen), mib(m.after))
}

// inspected asks memfit's agent to inspect a pod now, and returns what it found with what the program says of the same
// moment. Where memory changed meanwhile it asks again, and in the end returns the last of them with a *moving.
func (t *teller) inspected(
	ctx context.Context, pod string,
) (found *v1alpha1.ContainerSnapshot, values map[string]float64, err error) {
	for range looksMost {
		var before map[string]float64
		if before, err = t.ask(ctx, pod, "stats"); err != nil {
			return nil, nil, err
		}
		if found, err = t.looked(ctx, pod); err != nil {
			return nil, nil, err
		}
		if values, err = t.ask(ctx, pod, "stats"); err != nil {
			return nil, nil, err
		}
		m := &moving{before["rss"], bytes(&found.Memory.Resident), values["rss"]}
		if least, most := min(m.before, m.seen, m.after), max(m.before, m.seen, m.after); most-least <= most/oneMoment {
			return found, values, nil
		}
		err = m
	}
	return found, values, err
}

// looked asks for one look, and waits for it.
func (t *teller) looked(ctx context.Context, pod string) (found *v1alpha1.ContainerSnapshot, err error) {
	ctx, cancel := within(ctx, lookMost, "a look of memfit's agent into "+pod)
	defer cancel()
	began := time.Now()
	asked := began
	if err := t.inspect(ctx, pod, began); err != nil {
		return nil, err
	}
	err = await(ctx, func() (bool, error) {
		if found, err = t.snapshot(ctx, pod); errors.Is(err, errNoLook) && time.Since(asked) > askAgain {
			asked = time.Now() // a look that took too long is one all the same
			return false, errors.Join(err, t.inspect(ctx, pod, asked))
		}
		// A snapshot has whole seconds.
		return err == nil && !found.Memory.Time.Time.Before(began.Truncate(time.Second)), err
	})
	return found, err
}

// recommended is the highest request that memfit recommends for an arm until some time after its answer, and the
// highest limit.
func (t *teller) recommended(ctx context.Context, arm string, answered time.Time) (highest, most float64, err error) {
	ctx, cancel := within(ctx, sizedFor+lookMost, "a recommendation of memfit for "+arm)
	defer cancel()
	err = await(ctx, func() (bool, error) {
		request, limit, err := t.asked(ctx, arm)
		highest, most = max(highest, request), max(most, limit)
		return highest > 0 && time.Since(answered) > sizedFor, err
	})
	return highest, most, err
}

// look keeps what a person would see now. A command that fails is kept with its error: that is what they would see.
func (t *teller) look(ctx context.Context, pod string) {
	arm := t.story.Look.Arm
	for _, args := range [][]string{
		{"describe", "pod", pod}, {"describe", "memoryrecommendation", "deployment-" + arm}, {"events"},
	} {
		out, err := t.Cluster.run(ctx, "", args...)
		if err != nil {
			out += err.Error()
		}
		t.run.Said["kubectl "+join(args)] = out
	}
	asked := [][]string{
		{"why", "pod/" + pod}, {"explain", "deployment/" + arm}, {"top", "--sort-by", "use"}, {"map", "pod/" + pod},
	}
	if t.story.Pages {
		t.drawn(ctx, pod)
		asked[len(asked)-1] = append(asked[len(asked)-1], "--pages")
	}
	for _, args := range asked {
		out, err := t.plugin(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		t.run.Said["kubectl memfit "+join(args)] = out
	}
}

// drawn has memfit's agent draw a map of the pages of a pod.
func (t *teller) drawn(ctx context.Context, pod string) {
	if t.run.Map != "" {
		return
	}
	_, err := t.Cluster.run(ctx, "", "annotate", "pod", pod, "--overwrite", v1alpha1.MapAnnotation+"=true")
	if err == nil {
		_, err = t.looked(ctx, pod)
	}
	if err == nil {
		t.run.Map, err = t.plugin(ctx, "map", "pod/"+pod, "-o", "svg")
	}
	if err != nil {
		t.tell("a map of %s: %v", pod, err)
	}
}

func join(args []string) string { return strings.Join(args, " ") }

// await asks every two seconds until it is done or the time is up, and then reports what it heard last.
func await(ctx context.Context, done func() (bool, error)) error {
	var last error
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-time.After(2 * time.Second):
		}
	}
}
