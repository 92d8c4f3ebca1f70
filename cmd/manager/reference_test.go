// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"

	"k8s.io/utils/clock"

	rescuectl "github.com/memfit/memfit/controllers/rescue"
	usagectl "github.com/memfit/memfit/controllers/usage"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/hack/reference"
	podwebhook "github.com/memfit/memfit/webhooks/pod"
	"github.com/memfit/memfit/webhooks/server"
)

const referenceIntro = `# manager

The Deployment that serves the webhook on every replica and runs the controllers on the leader.
Besides its own metrics it has those of [controller-runtime](https://book.kubebuilder.io/reference/metrics-reference).

`

// TestReference checks the page about the manager.
func TestReference(t *testing.T) {
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	var o options
	if err := o.bind(f, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	var metrics reference.Metrics
	workloadctl.NewMetrics(&metrics)
	(&workloadctl.ClusterTotals{Clock: clock.RealClock{}}).Register(&metrics)
	usagectl.NewMetrics(&metrics)
	rescuectl.NewMetrics(&metrics)
	podwebhook.NewMetrics(&metrics)
	server.NewMetrics(&metrics)
	text, err := metrics.Page()
	if err != nil {
		t.Fatal(err)
	}
	reference.Check(t, "manager.md", "cmd/manager", referenceIntro+reference.Flags(f)+"\n"+text)
}
