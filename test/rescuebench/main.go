// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command rescuebench measures how many of the containers that grow beyond their memory limit survive (`make
// bench-rescue`): with nothing, with VPA, with memfit without rescue, and with rescue. Every container runs in a
// Deployment of one pod on the lab's node. Its limit is read every few milliseconds from this machine's cgroups. The
// command prints tables of all arms.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

type options struct {
	arms, kinds   []string
	rates, limits []int // MiB/s, MiB
	factors       []float64
	runs, atOnce  int
	hold, heap    time.Duration
	out, node     string
	exec          string // the lab's program, which runs commands on the node
	// vpa is the directory of VPA's programs, vpaCRDs the file with its CRDs.
	vpa, vpaCRDs string
}

func main() {
	var o options
	list(&o.arms, "arms", "nothing,memfit,rescue", "Arms: nothing, vpa, memfit (without rescue), rescue.")
	list(&o.kinds, "kinds", "ramp,sawtooth,leak", "Kinds of programs: ramp, sawtooth, leak, heap.")
	rates := flag.String("rates", "5,25,100,400", "Growth of ramps, MiB/s.")
	limits := flag.String("limits", "128,256,512,1024", "Limits, MiB.")
	factors := flag.String("factors", "1.2,1.5,2,3", "Final size of ramps, as multiples of the limit.")
	flag.IntVar(&o.runs, "runs", 1, "Runs of each combination of rate and limit; factors alternate.")
	flag.IntVar(&o.atOnce, "at-once", 2, "Containers at the same time.")
	flag.DurationVar(&o.hold, "hold", 15*time.Second, "How long a program keeps running after it has grown.")
	flag.DurationVar(&o.heap, "heap", 5*time.Minute, "How long a garbage-collected heap is observed.")
	flag.StringVar(&o.out, "out", "", "File for the tables, in addition to stdout.")
	flag.StringVar(&o.node, "node", "", "Kind of the lab's second node, to run containers there: cgroup2.")
	flag.StringVar(&o.exec, "exec", "/var/lib/memfit-lab/bin/lab", "The lab's program, which reads that node's cgroups.")
	flag.StringVar(&o.vpa, "vpa", "", "Directory with vpa-recommender and vpa-updater, for the arm vpa.")
	flag.StringVar(&o.vpaCRDs, "vpa-crds", "", "File with VPA's CustomResourceDefinitions, for the arm vpa.")
	flag.Parse()
	o.rates, o.limits = numbers(*rates), numbers(*limits)
	for f := range strings.SplitSeq(*factors, ",") {
		n, err := strconv.ParseFloat(f, 64)
		exitOn(err)
		o.factors = append(o.factors, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exitOn(run(ctx, &o))
}

func list(into *[]string, name, value, help string) {
	*into = strings.Split(value, ",")
	flag.Func(name, help+" Default: "+value+".", func(s string) error { *into = strings.Split(s, ","); return nil })
}

func numbers(s string) (all []int) {
	for f := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(f)
		exitOn(err)
		all = append(all, n)
	}
	return all
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rescuebench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	k8s, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	var all []result
	for _, arm := range o.arms {
		results, err := runArm(ctx, k8s, config, o, arm)
		all = append(all, results...)
		if err != nil {
			return fmt.Errorf("arm %s: %w", arm, err)
		}
	}
	text := tables(o, all)
	fmt.Print(text)
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if missed := missedTargets(all); len(missed) > 0 {
		return errors.New("targets missed: " + strings.Join(missed, "; "))
	}
	return nil
}

// runArm runs every program of an arm, at most o.atOnce at a time.
func runArm(ctx context.Context, k8s client.Client, config *rest.Config, o *options, arm string) ([]result, error) {
	namespace, err := prepare(ctx, k8s, arm)
	if err != nil {
		return nil, err
	}
	defer remove(k8s, namespace)
	if arm == vpaArm {
		stop, err := startVPA(ctx, k8s, config, o, namespace)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	programs := programsOf(o)
	results, errs := make([]result, len(programs)), make([]error, len(programs))
	turns := make(chan struct{}, o.atOnce)
	var jobs sync.WaitGroup
	for i := range programs {
		turns <- struct{}{}
		jobs.Go(func() {
			defer func() { <-turns }()
			results[i], errs[i] = runProgram(ctx, k8s, o, namespace, arm, &programs[i])
			results[i].arm = arm
			fmt.Fprintln(os.Stderr, results[i].line(), errText(errs[i]))
		})
	}
	jobs.Wait()
	ok := results[:0]
	for i := range results {
		if errs[i] == nil {
			ok = append(ok, results[i])
		}
	}
	if len(ok) == 0 && len(errs) > 0 {
		return nil, errs[0]
	}
	return slices.Clip(ok), nil
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return "not counted: " + err.Error()
}
