// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"regexp"

	"github.com/memfit/memfit/internal/attribution/amounts"
)

const rubyVersion = "ruby_version"

var rubyVersions = []VersionAt{
	{Symbol: rubyVersion},
	{Path: regexp.MustCompile(`libruby[^/]*?(\d+\.\d+)`)},
}

// Ruby has no heap cap. glibc's arenas retain its memory, so two arenas are a common default (Heroku since 2019;
// article 3). This row must not set RUBYOPT: an invalid option stops Ruby at start.
var _ = row(&Runtime{
	Name: "Ruby", Title: "Ruby", Order: 6,
	Images:   []Image{{Name: "ruby", Tagged: true}, {Name: "rails"}, {Name: "redmine"}},
	Commands: []string{"ruby", "ruby*", "bundle", "bundler", "rails", "rake", "puma", "unicorn", "sidekiq", "irb"},
	Marks: []Mark{ // checked with Debian's 3.1
		{Program: true, Symbol: rubyVersion, Versions: rubyVersions},
		{File: "libruby*.so*", Versions: rubyVersions},
	},
	Knobs:      glibc(2, "Ruby's usual number of malloc arenas; more of them retain freed memory", ""),
	HeapReader: amounts.Ruby,
	Levers: append([]Lever{{
		Action: "a fresh worker process", How: "let the server replace its workers (puma_worker_killer, pitchfork)",
		Reader: amounts.Ruby, Gain: freshProcess,
	}}, glibcLevers("Process.warmup (3.3 and later), or malloc_trim(0) through Fiddle, after a burst")...),
	Advice: "images that preload jemalloc, as generated Rails Dockerfiles do, ignore MALLOC_ARENA_MAX; nothing is lost " +
		"there",
})
