// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strings"

	"github.com/memfit/memfit/internal/identity"
)

const platformsIntro = `# Platforms

Pods whose owner does not outlive them are one workload if what is in the second column is equal, without any configuration.
The namespace is always part of it.
A profile that sets ` + "`spec.identity.labels`" + ` replaces the table for its pods.
"Without its run" cuts endings such as ` + "`-x7k2p`" + ` and ` + "`-1764201600`" + `.
Each row was checked against the platform's own source.

`

// Platforms is the page of the table of platforms.
func Platforms() string {
	var rows [][]string
	for _, p := range identity.Platforms() {
		owner := "none, or a Pod"
		if len(p.Kinds) > 0 {
			owner = codes(p.Kinds) + " of " + code(p.Group)
		}
		var sources []string
		repository, files, _ := strings.Cut(p.Source, ":")
		for file := range strings.SplitSeq(files, ", ") {
			if next, path, another := strings.Cut(file, ":"); another {
				repository, file = next, path
			}
			sources = append(sources, repository+": "+code(file))
		}
		rows = append(rows, []string{code(p.Name), p.Identifies, owner, strings.Join(sources, ", ")})
	}
	return platformsIntro + table([]string{"platform", "identified by", "owner", "source"}, rows)
}
