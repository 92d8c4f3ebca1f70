// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

// commands lists the subcommands in the order in which a newcomer meets them.
func commands() []command {
	return []command{
		{"binaries", "[--only a,b] [--print-dir]", "build the programs of the node into the cache", runBinaries},
	}
}
