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
	readyTimeout = 6 * time.Minute // a busy machine starts eight programs in that time
	// inspectTimeout bounds how long memfit's agent takes to inspect a container on request and to write the snapshot.
	inspectTimeout = 3 * time.Minute
	// sizingPeriod is how long after its answer an arm's recommendation is observed: a request is the memory held for
	// four readings, and Go collects an idle program two minutes after the last collection.
	sizingPeriod = 2 * time.Minute
	// inspectRetry is when a failed inspection is requested again; the agent stops trying after five seconds.
	inspectRetry = 30 * time.Second
	// inspectAttempts bounds the inspections of a container whose memory changes meanwhile.
	inspectAttempts = 4
	// steadyPart: RSS before, in and after an inspection may differ by 1/64 of the largest.
	steadyPart = 64
	// endTimeout bounds how long a kubelet takes to report how a container ended: with one processor, more than 30 s.
	endTimeout = 2 * time.Minute
	// stepTimeout bounds a step. The longest takes 5 min on two idle processors; 8 min was too short while a kernel was
	// compiled on the same machine.
	stepTimeout = 25 * time.Minute
)

// trial runs one story on a cluster.
type trial struct {
	*Cluster
	story    Story
	programs string    // folder
	log      io.Writer // of progress

	mu  sync.Mutex
	run *Run
}

// runStory applies a story, does its steps, returns what was read, and deletes the namespace.
func runStory(ctx context.Context, kubectl, node, programs string, s Story, log io.Writer) (*Run, error) {
	if node != "" {
		s = s.lean()
	}
	t := &trial{
		Cluster: &Cluster{Kubectl: kubectl, Namespace: "articles-" + s.Name, Node: node}, story: s, programs: programs,
		log: log,
		run: &Run{Story: s, Output: map[string]string{}, Began: time.Now()},
	}
	defer func() {
		t.run.Took = time.Since(t.run.Began)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
		defer cancel()
		if _, err := t.Cluster.run(end, "", "delete", "namespace", t.Namespace, "--ignore-not-found"); err != nil {
			t.progress("the namespace was not deleted: %v", err)
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

// phases groups steps that an arm does without waiting for the other arms: a prediction is of the memory right before
// the predicted step, so that step follows immediately.
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

func (t *trial) progress(format string, args ...any) {
	fmt.Fprintf(t.log, "%s  %s: %s\n", time.Now().Format(time.TimeOnly), t.story.Name, fmt.Sprintf(format, args...))
}

func (t *trial) apply(ctx context.Context) error {
	if _, err := t.Cluster.run(ctx, "", "delete", "namespace", t.Namespace, "--ignore-not-found"); err != nil {
		return err
	}
	if _, err := t.Cluster.run(ctx, "", "create", "namespace", t.Namespace); err != nil {
		return err
	}
	path := filepath.Join(t.programs, t.story.Program)
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() { // a folder is a Go program, which has an image of its own
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

// started waits for all pods, and returns the name of each arm's first pod. In an arm that may be killed, a kill at the
// start is a result.
func (t *trial) started(ctx context.Context) (map[string]string, error) {
	ctx, cancel := within(ctx, readyTimeout, "pods that are ready")
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
			values, err := t.query(ctx, first.Name, "stats")
			if err == nil {
				t.keep(Reading{Arm: arm.Name, Step: "start", Pod: first.Name, Values: values})
			}
			return err == nil, err
		})
		if err != nil {
			return nil, fmt.Errorf("waiting for the pods of %s: %w", arm.Name, err)
		}
	}
	t.progress("%d pods run after %s", len(names), time.Since(t.run.Began).Round(time.Second))
	return names, nil
}

func (t *trial) keep(r Reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run.Readings = append(t.run.Readings, r)
}

// dead returns how an arm ended in an earlier step; "": it still runs.
func (t *trial) dead(arm string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.run.Readings {
		if r.Arm == arm && r.Dead != "" {
			return r.Dead
		}
	}
	return ""
}

// phase does its steps in all arms at the same time.
func (t *trial) phase(ctx context.Context, steps []Step, pods map[string]string) error {
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
					fail(fmt.Errorf("%s: %w", step.Name, err)) // stops the other arms, too
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// step does one step in one arm.
func (t *trial) step(ctx context.Context, step Step, arm Arm, pod string) error {
	ctx, cancel := within(ctx, stepTimeout+step.Settle+inspectTimeout+sizingPeriod, "all of "+arm.Name)
	defer cancel()
	began := time.Now()
	if err := t.do(ctx, step, arm, pod); err != nil {
		return err
	}
	t.progress("%s of %s took %s", step.Name, arm.Name, time.Since(began).Round(time.Second))
	if t.story.Checked == (Place{arm.Name, step.Name}) {
		t.checkOutput(ctx, pod)
	}
	return nil
}

// outputTimeout bounds how long memfit takes to report all needed facts.
const outputTimeout = 90 * time.Second

// checkOutput collects memfit's output until it has all needed facts or the time is up.
func (t *trial) checkOutput(ctx context.Context, pod string) {
	for began := time.Now(); ; {
		t.collectOutput(ctx, pod)
		answers, verdict := answersFor(t.run, pod)
		incomplete := slices.ContainsFunc(answers, func(a Answer) bool { return a.Line == "" })
		if !incomplete || time.Since(began) > outputTimeout {
			t.progress("%s, after %s: %s", pod, time.Since(began).Round(time.Second), verdict)
			if incomplete {
				t.progress("all of its output:\n%s", t.run.Output["kubectl memfit why pod/"+pod])
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

func (t *trial) do(ctx context.Context, step Step, arm Arm, pod string) error {
	r := Reading{Arm: arm.Name, Step: step.Name, Pod: pod}
	if t.dead(arm.Name) != "" {
		return nil // already recorded; the restarted container is another one
	}
	if step.Predicted {
		before := Reading{Arm: arm.Name, Step: beforeStep(step.Name), Pod: pod}
		var err error
		if before.Snapshot, before.Values, err = t.inspectSteady(ctx, pod); err != nil {
			return fmt.Errorf("%s before the step: %w", arm.Name, err)
		}
		t.keep(before)
	}
	values, err := t.query(ctx, pod, step.Path)
	answered := time.Now()
	if err == nil && step.Settle > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step.Settle):
		}
		var after map[string]float64
		if after, err = t.query(ctx, pod, "stats"); err == nil {
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
		r.Snapshot, now, err = t.inspectSteady(ctx, pod)
		if m := (*unsteadyError)(nil); errors.As(err, &m) {
			t.progress("%s after %s: %v", arm.Name, step.Name, m)
		} else if err != nil {
			return fmt.Errorf("%s: %w", arm.Name, err)
		}
		if step.Settle > 0 {
			values["rss"] = now["rss"]
		}
		if arm.Profile != "" && step.Sized {
			if r.Request, r.Limit, err = t.maxRecommended(ctx, arm.Name, answered); err != nil {
				return fmt.Errorf("%s: %w", arm.Name, err)
			}
		}
	}
	t.keep(r)
	return nil
}

// end waits until the kubelet reports how the container of a pod ended; "": no report.
func (t *trial) end(ctx context.Context, arm, name string) (how string) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
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

// unsteadyError reports that memory changed during an inspection.
type unsteadyError struct{ before, seen, after float64 }

func (m *unsteadyError) Error() string {
	return fmt.Sprintf("%s were resident before the agent's inspection, %s in it, and %s after it", mib(m.before),
		mib(m.seen), mib(m.after))
}

// inspectSteady has memfit's agent inspect a pod now, and returns the snapshot and the program's own numbers. Where
// memory changed meanwhile it inspects again; after the last attempt it returns that one with an *unsteadyError.
func (t *trial) inspectSteady(
	ctx context.Context, pod string,
) (found *v1alpha1.ContainerSnapshot, values map[string]float64, err error) {
	for range inspectAttempts {
		var before map[string]float64
		if before, err = t.query(ctx, pod, "stats"); err != nil {
			return nil, nil, err
		}
		if found, err = t.inspectNow(ctx, pod); err != nil {
			return nil, nil, err
		}
		if values, err = t.query(ctx, pod, "stats"); err != nil {
			return nil, nil, err
		}
		m := &unsteadyError{before["rss"], bytes(&found.Memory.Resident), values["rss"]}
		if least, most := min(m.before, m.seen, m.after), max(m.before, m.seen, m.after); most-least <= most/steadyPart {
			return found, values, nil
		}
		err = m
	}
	return found, values, err
}

// inspectNow requests one inspection, and waits for its snapshot.
func (t *trial) inspectNow(ctx context.Context, pod string) (found *v1alpha1.ContainerSnapshot, err error) {
	ctx, cancel := within(ctx, inspectTimeout, "an inspection of "+pod+" by memfit's agent")
	defer cancel()
	began := time.Now()
	asked := began
	if err := t.inspect(ctx, pod, began); err != nil {
		return nil, err
	}
	err = await(ctx, func() (bool, error) {
		if found, err = t.snapshot(ctx, pod); errors.Is(err, errNotInspected) && time.Since(asked) > inspectRetry {
			asked = time.Now() // the snapshot of an earlier request is accepted as well
			return false, errors.Join(err, t.inspect(ctx, pod, asked))
		}
		// A snapshot has whole seconds.
		return err == nil && !found.Memory.Time.Time.Before(began.Truncate(time.Second)), err
	})
	return found, err
}

// maxRecommended returns the highest request and limit that memfit recommends for an arm until sizingPeriod after its
// answer.
func (t *trial) maxRecommended(ctx context.Context, arm string, answered time.Time) (highest, most float64, err error) {
	ctx, cancel := within(ctx, sizingPeriod+inspectTimeout, "a recommendation of memfit for "+arm)
	defer cancel()
	err = await(ctx, func() (bool, error) {
		request, limit, err := t.recommendation(ctx, arm)
		highest, most = max(highest, request), max(most, limit)
		return highest > 0 && time.Since(answered) > sizingPeriod, err
	})
	return highest, most, err
}

// collectOutput records what the commands print now; a command that fails, with its error.
func (t *trial) collectOutput(ctx context.Context, pod string) {
	arm := t.story.Checked.Arm
	for _, args := range [][]string{
		{"describe", "pod", pod}, {"describe", "memoryrecommendation", "deployment-" + arm}, {"events"},
	} {
		out, err := t.Cluster.run(ctx, "", args...)
		if err != nil {
			out += err.Error()
		}
		t.run.Output["kubectl "+join(args)] = out
	}
	plugin := [][]string{
		{"why", "pod/" + pod}, {"explain", "deployment/" + arm}, {"top", "--sort-by", "use"}, {"map", "pod/" + pod},
	}
	if t.story.Pages {
		t.drawMap(ctx, pod)
		plugin[len(plugin)-1] = append(plugin[len(plugin)-1], "--pages")
	}
	for _, args := range plugin {
		out, err := t.plugin(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		t.run.Output["kubectl memfit "+join(args)] = out
	}
}

// drawMap has memfit's agent draw a map of the pages of a pod.
func (t *trial) drawMap(ctx context.Context, pod string) {
	if t.run.Map != "" {
		return
	}
	_, err := t.Cluster.run(ctx, "", "annotate", "pod", pod, "--overwrite", v1alpha1.MapAnnotation+"=true")
	if err == nil {
		_, err = t.inspectNow(ctx, pod)
	}
	if err == nil {
		t.run.Map, err = t.plugin(ctx, "map", "pod/"+pod, "-o", "svg")
	}
	if err != nil {
		t.progress("a map of %s: %v", pod, err)
	}
}

func join(args []string) string { return strings.Join(args, " ") }

// await calls done every two seconds until it returns true or ctx ends; its error then includes done's last error.
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
