// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

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
