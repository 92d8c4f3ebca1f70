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
	flag.IntVar(&o.pods, "pods", 100_000, "TestStart: pods that are there when memfit starts, at most a million")
	flag.IntVar(&o.rollout, "rollout", 10_000, "TestStart: pods that are replaced then")
	flag.DurationVar(&o.firstDecision, "first-decision", time.Minute, "TestStart: fail when the first comes later")
	flag.DurationVar(
		&o.behind, "behind", time.Minute,
		"TestStart: fail when workloads are queued or pods are not known for longer than this after the last new pod, or "+
			"when a node is not read for longer",
	)
	flag.StringVar(&o.goMemLimit, "gomemlimit", "", "TestStart: GOMEMLIMIT of memfit, 900MiB for instance; empty: none")
	flag.IntVar(&o.requests, "requests", 15_000, "TestAdmission: requests of a round; a third of them over HTTP/2")
	flag.IntVar(&o.repeat, "rounds", 3, "TestAdmission: rounds; the median of each number is reported")
	flag.IntVar(&o.hostile, "hostile", 1000, "TestUnderAttack: idle and slow connections")
	certificates := flag.String("certificates", "", "folder with tls.crt and tls.key of -noop")
	floor := flag.Int("noop", 0, "be a webhook on this port that allows everything (the test starts itself so)")
	flag.Parse()
	if *floor > 0 {
		if err := noop(context.Background(), *certificates, *floor); err != nil {
			say("%v", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// bounded ends two minutes before the time of the test is over: a run that gets nowhere says how far it came, and ends
// what it started.
func bounded(t *testing.T) context.Context {
	t.Helper()
	end, limited := t.Deadline()
	if !limited {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end.Add(-2*time.Minute))
	t.Cleanup(cancel)
	return ctx
}

// TestOperators lets both operators work on the cluster, and reports what each takes.
func TestOperators(t *testing.T) {
	o := given
	o.pods = o.workloads * o.replicas
	ctx, w := bounded(t), simulate(t, o)
	if err := w.autoscaled(ctx); err != nil {
		t.Fatalf("creating VerticalPodAutoscalers: %v", err)
	}
	rivals, err := w.compete(ctx, t, o)
	if err == nil {
		err = w.report(ctx, o, rivals)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// podsPerNode are as many as a node has in a cluster of 100,000 pods on 3,300 nodes.
const podsPerNode = 30

// TestStart measures how the manager begins in a cluster that is there already, how it keeps up with a rollout in it,
// and what a second replica holds, and takes to go on where the first was stopped.
func TestStart(t *testing.T) {
	o := given
	o.workloads = o.pods / o.replicas
	o.pods = o.workloads * o.replicas
	o.nodes = (o.pods + podsPerNode - 1) / podsPerNode
	ctx, w := bounded(t), simulate(t, o)
	a, err := w.follow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := w.operate(t, o)
	late, err := w.begin(ctx, o, p, a)
	if err != nil {
		t.Fatal(errors.Join(err, p.said()))
	}
	behind, err := w.rollOut(ctx, o, p, a)
	if err = errors.Join(late, behind, err); err != nil {
		t.Error(errors.Join(err, p.said()))
	}
	next := w.operate(t, o)
	if err := w.takeOver(ctx, p, next); err != nil {
		t.Error(errors.Join(err, next.said()))
	}
}

// TestAdmission measures what an admission webhook costs: memfit's, VPA's, and one of the same framework that does
// nothing. All get the same pods from the same client in the same run, and know the same cluster. ../README.md says
// what is fair about it and what is not.
func TestAdmission(t *testing.T) {
	w, servers, cases := webhooks(t, given)
	all, err := given.rounds(bounded(t), servers, cases)
	if err != nil {
		t.Fatal(err)
	}
	if servers[1].api.made(http.MethodPut, "leases") > 0 {
		t.Error("memfit became the leader: what was measured is more than its webhook")
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
	if err := o.underAttack(bounded(t), servers[1], cases[0]); err != nil {
		t.Error(err)
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
