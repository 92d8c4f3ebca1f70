// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"testing"

	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/hack/reference"
)

const referenceIntro = `# agent

The DaemonSet that reads the memory of the containers of its node.
[The guide](../guide/agent.md) explains how to install it.

`

// TestReference checks the page about the agent.
func TestReference(t *testing.T) {
	f := flag.NewFlagSet("agent", flag.ContinueOnError)
	var o options
	o.bind(f, func(string) string { return "" })
	var metrics reference.Metrics
	scan.NewMetrics(&metrics)
	text, err := metrics.Page()
	if err != nil {
		t.Fatal(err)
	}
	reference.Check(t, "agent.md", "cmd/agent", referenceIntro+reference.Flags(f)+"\n"+text)
}
