// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// PHP takes its memory_limit from php.ini, not from the environment, and it holds per request.
var _ = row(&Runtime{
	Name: "PHP", Title: "PHP", Order: 8,
	Commands: []string{"php", "php*", "php-fpm", "php-fpm*"},
	Knobs:    glibc(0, "", ""),
	Growth:   func(Facts, bool) Growth { return capped("PHP", 0, 0) },
	FullHeap: FullHeap{Words: []string{"Allowed memory size of"}}, // its memory_limit
	Advice:   "PHP has no memory variable: pm.max_children times memory_limit must fit below the limit, and pm.max_requests replaces workers that grow",
})
