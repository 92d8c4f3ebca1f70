// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// fault is a failure of the cluster that a test injects.
type fault struct {
	name string
	// scenario describes the fault, promise what memfit does; both for docs/evidence/chaos.md.
	scenario, promise string
	// inject starts the fault, and ends it.
	inject func(t *testing.T, w *world)
	// within limits the time to recover after the end of the fault.
	within time.Duration
	// exits is how often each replica may exit by itself. With controller-runtime, a leader that cannot renew its lease
	// exits.
	exits int
	// workloads replace the usual ones; flags and etcd are additional flags of the manager and of etcd.
	workloads   []workload
	flags, etcd []string
}

// managerLimit is the manager's memory limit in config/manager/deployment.yaml.
const managerLimit = 512 * memory.MiB

// row holds the results of a fault.
type row struct {
	fault              *fault
	kills, unknown     int64
	lost, doubled      int64
	blocked, beyond    int
	evicted, resized   int
	recovered, slowest time.Duration
	exits              int
	peak               memory.Bytes
	failures           []string
}

// TestChaos injects all faults, or one with -run TestChaos/api-away. It needs CHAOS=1, because each fault takes about a
// minute.
func TestChaos(t *testing.T) {
	if os.Getenv("CHAOS") == "" {
		t.Skip("takes about a minute for each fault: make chaos")
	}
	if programs() == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not a directory with etcd, kube-apiserver and kube-controller-manager: run make chaos")
	}
	logf.SetLogger(zap.New(zap.WriteTo(discard{})))
	binary, err := buildManager()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(binary) })
	var rows []*row
	for i := range faults {
		f := &faults[i]
		t.Run(f.name, func(t *testing.T) {
			r := &row{fault: f}
			rows = append(rows, r)
			defer func() { // also after t.Fatal: otherwise the docs keep the row of an earlier run
				if t.Failed() && len(r.failures) == 0 {
					r.fail("the test ended before its results were checked")
				}
				fmt.Println(r.line())
				for _, failure := range r.failures {
					t.Error(failure)
				}
			}()
			f.run(t, r)
		})
	}
	fmt.Println()
	for _, r := range rows {
		fmt.Println(r.line())
	}
	if path := os.Getenv("CHAOS_DOC"); path != "" {
		document(t, path, rows)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// run injects one fault into a new cluster.
func (f *fault) run(t *testing.T, r *row) {
	w := newWorld(t, f)
	t.Cleanup(func() {
		if t.Failed() || len(r.failures) > 0 || os.Getenv("CHAOS_KEEP") != "" {
			w.keep(t, f.name)
		}
	})
	time.Sleep(3 * time.Second) // some kills before anything happens
	f.inject(t, w)
	w.load.paused.Store(true)
	for _, one := range w.workloads { // one more kill each, which memfit must count
		within(t, time.Minute, "a running container of "+one.name, func() error {
			if !w.nodes.endOne(one.name) {
				return errors.New("none runs")
			}
			return nil
		})
	}
	// memfit can only count what kubelets have reported: on a busy machine a thousand statuses take a while.
	within(t, 5*time.Minute, "kubelets to report all statuses", func() error {
		if !w.nodes.written() {
			return errors.New("statuses are still to be written")
		}
		return nil
	})
	ended := time.Now()
	var wrong error
	for {
		if wrong = w.recovered(); wrong == nil {
			break
		}
		if time.Since(ended) > f.within {
			r.fail("not recovered after %s: %v", f.within, wrong)
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	r.recovered = time.Since(ended)
	time.Sleep(5 * time.Second) // the counts must not rise any further
	w.judge(r)
}

// recovered returns nil if memfit is ready, injects pods and has counted every kill, and otherwise an error.
func (w *world) recovered() error {
	if w.leader() == nil {
		return errors.New("no leader, or more than one")
	}
	for _, r := range w.replicas {
		if !r.ready() {
			return fmt.Errorf("%s is not ready", r.name)
		}
	}
	return errors.Join(w.injects(), w.counted())
}

func (r *row) fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// judge compares the results with what every fault requires.
func (w *world) judge(r *row) {
	for _, one := range w.workloads {
		truth := w.truth(one.name)
		r.kills += w.nodes.kills(one.name)
		counted, err := w.count(one.name)
		if err != nil {
			r.fail("%s: %v", one.name, err)
			continue
		}
		unknown := w.nodes.unknown(one.name)
		r.unknown += unknown
		r.lost += max(0, truth-unknown-counted)
		if counted > truth || counted < truth-unknown {
			r.fail("%s: %d kills counted of %d, of which %d are unobservable", one.name, counted, truth, unknown)
		}
	}
	r.doubled = w.doubled.Load()
	w.mu.Lock()
	r.blocked, r.slowest = w.blocked, w.slowest
	if w.tried == 0 {
		r.fail("the probe created no pod")
	}
	if w.blocked > 0 {
		r.fail("creating %d of %d pods failed: %s", w.blocked, w.tried, w.why)
	}
	w.mu.Unlock()
	w.nodes.mu.Lock()
	r.beyond = w.nodes.beyond
	for _, one := range w.workloads {
		r.evicted += w.nodes.evicted[one.name]
		r.resized += w.nodes.resized[one.name]
		if highest := w.nodes.highest[one.name]; highest > highestLimit {
			r.fail("%s: a pod had a limit of %s, but its profile allows at most %s", one.name, highest, highestLimit)
		}
		if one.mode != v1alpha1.SizingInPlaceOrEvict && w.nodes.evicted[one.name] > 0 {
			r.fail("%s: %d pods were evicted with sizing.mode: %s", one.name, w.nodes.evicted[one.name], one.mode)
		}
	}
	w.nodes.mu.Unlock()
	if r.doubled > 0 {
		r.fail("%d kills were counted twice", r.doubled)
	}
	if r.beyond > 0 {
		r.fail("%d pods were disrupted beyond maxUnavailable", r.beyond)
	}
	for _, one := range w.replicas {
		_, peak := one.memory()
		r.peak = max(r.peak, memory.Bytes(peak))
		if memory.Bytes(peak) > managerLimit {
			r.fail("%s used %s, and its limit is %s", one.name, memory.Bytes(peak)/memory.MiB*memory.MiB, managerLimit)
		}
		ended := one.ended()
		r.exits += ended
		if ended > r.fault.exits {
			r.fail("%s exited %d times by itself, at most %d allowed", one.name, ended, r.fault.exits)
		}
		if logged := one.logText(); strings.Contains(logged, "panic:") {
			_, panicked, _ := strings.Cut(logged, "panic:")
			r.fail("%s panicked: %.500s", one.name, panicked)
		}
	}
}

func (r *row) line() string {
	result := "ok"
	if len(r.failures) > 0 {
		result = "FAILED"
	}
	return fmt.Sprintf(
		"fault=%s kills=%d kills_unobservable=%d kills_lost=%d kills_doubled=%d pods_blocked=%d "+
			"disrupted_beyond_budget=%d recovered_in=%s within=%s resized=%d evicted=%d exits=%d slowest_create=%s "+
			"manager_peak=%s result=%s",
		r.fault.name, r.kills, r.unknown, r.lost, r.doubled, r.blocked, r.beyond, r.recovered.Round(100*time.Millisecond),
		r.fault.within, r.resized, r.evicted, r.exits, r.slowest.Round(time.Millisecond), r.peak/memory.MiB*memory.MiB,
		result,
	)
}

// generated matches the table of docs/evidence/chaos.md, which a run writes.
var generated = regexp.MustCompile(`(?s)<!-- make chaos -->.*<!-- end -->`)

// document writes the rows into the docs, and keeps the rows of faults that did not run.
func document(t *testing.T, path string, rows []*row) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := string(generated.Find(text))
	if before == "" {
		t.Fatalf("%s has no markers for the table", path)
	}
	var table strings.Builder
	table.WriteString("<!-- make chaos -->\n" +
		"| fault | what happens | what memfit does | recovered in |\n|---|---|---|---|\n")
	for i := range faults {
		f := &faults[i]
		if at := slices.IndexFunc(rows, func(r *row) bool { return r.fault == f }); at >= 0 {
			table.WriteString(rows[at].documented())
			continue
		}
		for line := range strings.Lines(before) {
			if strings.HasPrefix(line, "| "+f.name+" | ") {
				table.WriteString(line)
				break
			}
		}
	}
	text = generated.ReplaceAllLiteral(text, []byte(table.String()+"<!-- end -->"))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *row) documented() string {
	result := ""
	if len(r.failures) > 0 {
		// The errors must fit into one table row.
		result = ", **failed**: " + strings.NewReplacer("\n", " ", "|", "\\|").Replace(strings.Join(r.failures, "; "))
	}
	return fmt.Sprintf("| %s | %s | %s | %s%s |\n", r.fault.name, r.fault.scenario, r.fault.promise,
		r.recovered.Round(100*time.Millisecond), result)
}

// keep saves logs and statuses for debugging.
func (w *world) keep(t *testing.T, name string) {
	dir := filepath.Join(os.TempDir(), "memfit-chaos", name)
	_ = os.RemoveAll(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(w.plane.dir, "*.log"))
	if len(logs) > 0 {
		_ = exec.Command("cp", append(logs, dir)...).Run()
	}
	_ = os.WriteFile(filepath.Join(dir, "report.txt"), []byte(w.report()), 0o600)
	t.Logf("logs and statuses are in %s", dir)
}

// report returns everything that memfit reports: conditions, Events, pods and logs.
func (w *world) report() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var text strings.Builder
	var recs v1alpha1.MemoryRecommendationList
	if w.client.List(ctx, &recs) == nil {
		for i := range recs.Items {
			r := &recs.Items[i]
			fmt.Fprintf(&text, "recommendation %s: %d kills, %s\n", r.Name, r.Status.OOMKills, r.Status.Summary)
			for _, c := range r.Status.Conditions {
				fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	var profiles v1alpha1.MemoryProfileList
	if w.client.List(ctx, &profiles) == nil {
		for i := range profiles.Items {
			for _, c := range profiles.Items[i].Status.Conditions {
				fmt.Fprintf(&text, "profile %s: %s=%s %s: %s\n", profiles.Items[i].Name, c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	var events eventsv1.EventList
	if w.client.List(ctx, &events) == nil {
		for i := range events.Items {
			e := &events.Items[i]
			fmt.Fprintf(&text, "event %s %s/%s %s: %s\n", e.EventTime.Format(time.TimeOnly), e.Regarding.Kind, e.Regarding.Name,
				e.Reason, e.Note)
		}
	}
	var pods corev1.PodList
	if w.client.List(ctx, &pods, client.InNamespace(shop)) == nil && len(pods.Items) < 50 {
		for i := range pods.Items {
			p := &pods.Items[i]
			fmt.Fprintf(&text, "pod %s limit %s %s %v\n", p.Name, p.Spec.Containers[0].Resources.Limits.Memory(), p.Status.Phase,
				p.Annotations[v1alpha1.InjectedAnnotation])
		}
	}
	for _, r := range w.replicas {
		text.WriteString(r.logText())
	}
	return text.String()
}

// awaitReport waits until memfit's report contains the text.
func (w *world) awaitReport(t *testing.T, what string) {
	t.Helper()
	within(t, time.Minute, fmt.Sprintf("memfit to report %q", what), func() error {
		if !strings.Contains(w.report(), what) {
			return errors.New("not reported")
		}
		return nil
	})
}
