// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// Ruby has no heap cap. What it retains is glibc's arenas, and two of them are the one default that the field agrees on
// (Heroku since 2019; article 3). The row must not grow RUBYOPT: a bad option stops Ruby at start.
var _ = row(&Runtime{
	Name: "Ruby", Title: "Ruby", Order: 6,
	Commands: []string{"ruby", "ruby*", "bundle", "bundler", "rails", "rake", "puma", "unicorn", "sidekiq", "irb"},
	Knobs:    glibc(2, "Ruby's usual number of malloc arenas; more of them retain freed memory", ""),
	Growth:   func(Facts, bool) Growth { return capped("Ruby", 0, 0) },
	Never: map[string]string{
		"RUBYOPT": "a bad option stops Ruby at start, and it can load code",
	},
	Advice: "images that preload jemalloc, as generated Rails Dockerfiles do, ignore MALLOC_ARENA_MAX; nothing is lost " +
		"there",
})
