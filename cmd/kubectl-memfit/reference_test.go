// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/hack/reference"
)

const referenceIntro = `# kubectl memfit

The plugin of kubectl.
[The guide](../guide/cli.md) has an example of each command.
Commands that read a cluster also take the flags of kubectl, such as ` + "`--kubeconfig` and `--as`" + ` (` + "`kubectl options`" + ` lists them).
`

// TestReference checks the page about the plugin.
func TestReference(t *testing.T) {
	without := slices.DeleteFunc(slices.Clone(inHelp), func(name string) bool {
		return name == "namespace" || name == "context"
	})
	reference.Check(t, "kubectl-memfit.md", "cmd/kubectl-memfit", referenceIntro+reference.Commands(root(), without...))
}

// TestHelpFits: no terminal of 120 columns wraps the text of a command.
func TestHelpFits(t *testing.T) {
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		for line := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
			if len(line) > 120 {
				t.Errorf("%s --help has a line of %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
		for _, each := range c.Commands() {
			check(each)
		}
	}
	check(root())
}
