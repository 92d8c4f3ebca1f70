// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/period"
)

// compressFlag is the flag that shortens memfit's own periods for tests; see package period.
const compressFlag = "lab-compress-evidence"

// bindLab adds the flag of a lab, with LAB_COMPRESS_EVIDENCE in the environment as its default.
func (o *options) bindLab(f *flag.FlagSet, env func(string) string) error {
	f.IntVar(&o.compressEvidence, compressFlag, 1,
		"LAB ONLY: divide memfit's own periods (a day and 35 days of history, an hour of evidence, the default watch and "+
			"cooldown) by this factor; with 144, a day takes ten minutes. Refused unless memfit's namespace has the label "+
			v1alpha1.LabLabel+"=true")
	if factor := env("LAB_COMPRESS_EVIDENCE"); factor != "" {
		if err := f.Set(compressFlag, factor); err != nil {
			return fmt.Errorf("LAB_COMPRESS_EVIDENCE=%s: %w", factor, err)
		}
	}
	return nil
}

func (o *options) validateLab() error {
	if err := period.Valid(o.compressEvidence); err != nil {
		return fmt.Errorf("--%s: %w", compressFlag, err)
	}
	return nil
}

// The shortest intervals with compressed evidence. The kubelet measures every 10 to 15 s.
const (
	minUsageInterval      = 5 * time.Second
	minCountersInterval   = 10 * time.Second // as for --kill-counters-interval
	minCheckpointInterval = 10 * time.Second
)

// shortenIntervals shortens the intervals that no flag sets, so that a compressed hour has as many samples as a real
// one, and a crash loses as little.
func (o *options) shortenIntervals(f *flag.FlagSet) {
	if o.compressEvidence <= 1 {
		return
	}
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	for name, interval := range map[string]struct {
		value *time.Duration
		least time.Duration
	}{
		"usage-interval":         {&o.usageInterval, minUsageInterval},
		"kill-counters-interval": {&o.sources.killCounters, minCountersInterval},
		"checkpoint-interval":    {&o.checkpointInterval, minCheckpointInterval},
	} {
		if !set[name] {
			*interval.value = max(*interval.value/time.Duration(o.compressEvidence), interval.least)
		}
	}
}

// compressEvidence shortens the periods of evidence if the flag is set and the cluster is a lab. In any other cluster
// it returns an error, because memfit would lower limits after minutes of use. Call it before anything uses a period.
// It lists the namespace instead of getting it, because the informers' permissions suffice for that.
func compressEvidence(ctx context.Context, config *rest.Config, o options) error {
	if o.compressEvidence <= 1 {
		return nil
	}
	refused := func(err error) error {
		return fmt.Errorf("--%s=%d is for labs only: %w", compressFlag, o.compressEvidence, err)
	}
	if o.namespace == "" {
		return refused(errors.New("set POD_NAMESPACE to memfit's own namespace, so that its labels can be read"))
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("preparing to read memfit's namespace: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	own := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.namespace).String()}
	found, err := client.CoreV1().Namespaces().List(ctx, own)
	switch {
	case err != nil:
		return fmt.Errorf("reading namespace %s for --%s: %w", o.namespace, compressFlag, err)
	case len(found.Items) != 1:
		return refused(fmt.Errorf("namespace %s (POD_NAMESPACE) does not exist", o.namespace))
	case found.Items[0].Labels[v1alpha1.LabLabel] != "true":
		return refused(fmt.Errorf("namespace %s does not have the label %s=true; remove the flag, or label the namespace if "+
			"nothing in this cluster matters", o.namespace, v1alpha1.LabLabel))
	}
	if err := period.Compress(o.compressEvidence); err != nil {
		return err
	}
	ctrl.Log.WithName("setup").Info("LAB ONLY: evidence is compressed; limits are lowered after minutes of use",
		"factor", period.Factor(), "day", period.Day.Duration().String(), "hour", period.Hour.Duration().String(),
		"usageInterval", o.usageInterval.String())
	return nil
}
