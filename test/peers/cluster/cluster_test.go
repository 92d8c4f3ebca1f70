// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"
)

// options are the flags.
type options struct {
	nodes, workloads, replicas int
	measure                    time.Duration
	memfit, vpa, vpaCRDs       string

	pods, rollout         int
	firstDecision, behind time.Duration
	goMemLimit            string

	requests, repeat, hostile int
}

var given options

func TestMain(m *testing.M) {
	o := &given
	flag.StringVar(&o.memfit, "memfit", "", "memfit's manager")
	flag.StringVar(&o.vpa, "vpa", "", "VPA's recommender, or for TestAdmission its admission controller")
	flag.StringVar(&o.vpaCRDs, "vpa-crds", "", "file with the definitions of VPA's kinds")
	flag.IntVar(&o.nodes, "nodes", 1000, "TestOperators: simulated nodes, at most 60000")
	flag.IntVar(&o.workloads, "workloads", 1000, "Deployments; TestAdmission: of which every second has a profile")
	flag.IntVar(&o.replicas, "replicas", 10, "pods of each Deployment")
	flag.DurationVar(&o.measure, "measure", 3*time.Minute, "TestOperators: time that is measured")
	flag.IntVar(&o.pods, "pods", 100_000, "TestStart: running pods when memfit starts, at most a million")
	flag.IntVar(&o.rollout, "rollout", 10_000, "TestStart: pods that are replaced afterwards")
	flag.DurationVar(&o.firstDecision, "first-decision", time.Minute, "TestStart: fail when the first one takes longer")
	flag.DurationVar(
		&o.behind, "behind", time.Minute,
		"TestStart: fail when workloads are queued, or statuses lack pods, for longer than this after the last new pod, or "+
			"when a node is not read for longer",
	)
	flag.StringVar(&o.goMemLimit, "gomemlimit", "", "TestStart: GOMEMLIMIT of memfit, 900MiB for instance; empty: none")
	flag.IntVar(&o.requests, "requests", 15_000, "TestAdmission: requests of a round; a third of them over HTTP/2")
	flag.IntVar(&o.repeat, "rounds", 3, "TestAdmission: rounds; the median of each number is reported")
	flag.IntVar(&o.hostile, "hostile", 1000, "TestUnderAttack: idle and slow connections")
	certificates := flag.String("certificates", "", "folder with tls.crt and tls.key of -noop")
	port := flag.Int("noop", 0, "serve a webhook on this port that allows everything (for the test's own use)")
	flag.Parse()
	if *port > 0 {
		if err := noop(context.Background(), *certificates, *port); err != nil {
			progress("%v", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// deadline returns a context that ends two minutes before the test's deadline, so that a run without progress can
// report its state and stop its programs.
func deadline(t *testing.T) context.Context {
	t.Helper()
	end, limited := t.Deadline()
	if !limited {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end.Add(-2*time.Minute))
	t.Cleanup(cancel)
	return ctx
}

// TestOperators runs both operators on the cluster, and reports the resources that each uses.
func TestOperators(t *testing.T) {
	o := given
	o.pods = o.workloads * o.replicas
	ctx, w := deadline(t), simulate(t, o)
	if err := w.createAutoscalers(ctx); err != nil {
		t.Fatalf("creating VerticalPodAutoscalers: %v", err)
	}
	operators, err := w.runOperators(ctx, t, o)
	if err == nil {
		err = w.measureOperators(ctx, o, operators)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// podsPerNode is that of a cluster of 100,000 pods on 3,300 nodes.
const podsPerNode = 30

// TestStart measures the manager's start in an existing cluster, its lag in a rollout, the memory of a standby replica,
// and the standby's takeover after the leader was stopped.
func TestStart(t *testing.T) {
	o := given
	o.workloads = o.pods / o.replicas
	o.pods = o.workloads * o.replicas
	o.nodes = (o.pods + podsPerNode - 1) / podsPerNode
	ctx, w := deadline(t), simulate(t, o)
	a, err := w.watchStatuses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := w.startManager(t, o)
	late, err := w.measureStart(ctx, o, p, a)
	if err != nil {
		t.Fatal(errors.Join(err, p.logTail()))
	}
	behind, err := w.measureRollout(ctx, o, p, a)
	if err = errors.Join(late, behind, err); err != nil {
		t.Error(errors.Join(err, p.logTail()))
	}
	next := w.startManager(t, o)
	if err := w.measureTakeover(ctx, p, next); err != nil {
		t.Error(errors.Join(err, next.logTail()))
	}
}

// TestAdmission measures the cost of admission webhooks: memfit's, VPA's, and one of the same framework that does
// nothing. All get the same pods from the same client in the same run, and the same cluster. ../README.md compares the
// conditions.
func TestAdmission(t *testing.T) {
	w, servers, cases := webhooks(t, given)
	all, err := given.rounds(deadline(t), servers, cases)
	if err != nil {
		t.Fatal(err)
	}
	if servers[1].api.count(http.MethodPut, "leases") > 0 {
		t.Error("memfit became the leader: the numbers include more than its webhook")
	}
	compare(os.Stdout, all)
	if err := w.reportHandler(t.Context(), os.Stdout); err != nil {
		t.Error(err)
	}
}

// TestUnderAttack measures memfit's webhook without and with idle and slow connections.
func TestUnderAttack(t *testing.T) {
	o := given
	o.vpa = ""
	_, servers, cases := webhooks(t, o)
	if err := o.underAttack(deadline(t), servers[1], cases[0]); err != nil {
		t.Error(err)
	}
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
