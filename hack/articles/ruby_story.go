// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

func rubyStory() Story {
	const usual, two, trims, memfit = "default", "arenas", "trims", "memfit"
	const work, again, trim, arenas = "work", "again", "trim", "glibc arenas"
	return Story{
		Name: "ruby", Title: "What inflates memory in Ruby?", Program: "proxy.rb", Image: "memfit.test/ruby:3.1",
		Command: []string{"ruby", "/app/proxy.rb"},
		Found: "A multi-threaded proxy takes 1.3 GB, little of it in Ruby's own heap. The usual explanation is " +
			"fragmentation, the usual answer MALLOC_ARENA_MAX=2. A picture of the system's heaps shows that " +
			"most of their pages are free. malloc_trim in each full collection reduces memory about as far as " +
			"two arenas do.",
		Profiles: map[string]string{"ruby": "  runtime: {type: Ruby, version: \"3.1\"}\n" +
			"  sizing: {mode: Recommend, limit: {min: 64Mi, max: 2Gi}}"},
		Arms: []Arm{
			{Name: usual, Desc: "limit 512Mi, no settings", LimitMi: 512},
			{Name: two, Desc: "MALLOC_ARENA_MAX=2", LimitMi: 512, Env: map[string]string{"MALLOC_ARENA_MAX": "2"}},
			{Name: trims, Desc: "malloc_trim in each full collection", LimitMi: 512, Env: map[string]string{"TRIM": "1"}},
			{Name: memfit, Desc: "limit 512Mi, with memfit", LimitMi: 512, Profile: "ruby"},
		},
		Steps: []Step{
			{Name: work, Path: "work?rounds=60"},
			{Name: again, Path: "work?rounds=180", Settle: 5e9, Inspect: true},
			{Name: trim, Path: "trim", Predicted: true, Inspect: true},
		},
		Checked: Place{usual, again}, Pages: true,
		Needed: []Need{
			{"that Ruby's own heap is small", `Mi Ruby heap|Ruby heap +\S+Mi`},
			{"that most of the system's heaps is free", `(?i)glibc arenas.*(free|nothing)`},
			{"how much a trim would give back", `malloc_trim would give back \d+Mi`},
			{"what can be set without patching Ruby", `tuning.arenaMax: 2 in the profile`},
		},
		Known: "`kubectl memfit map --pages` draws the pages for which the author wrote a visualizer. memfit " +
			"cannot trim a Ruby process and names the call that the program can make; memfit sets two arenas.",
		Expect: []Expectation{
			{"Ruby heap, share of RSS", "hardly any (a picture)", 0.05, 0.05, partShare(usual, again, "Ruby heap"), ""},
			{"Free memory, share of the glibc arenas", "most of it (a picture)", 0.75, 0.25,
				freeShare(usual, again, arenas), ""},
			{"RSS with two arenas / no settings", "much less (a picture)", 0.65, 0.25,
				ratio(point{two, again, "rss"}, point{usual, again, "rss"}), ""},
			{"RSS under load with a trim in each full collection / two arenas",
				"almost as little (a picture)", 1, 0.25,
				ratio(point{trims, again, "working"}, point{two, again, "working"}), ""},
			{"memfit's prediction of the trim (1: exact)", "-", 1, 0.03, predicted(usual, trim, "trim"),
				"no article predicts"},
			{"RSS with memfit / two arenas", "-", 1, 0.15,
				ratio(point{memfit, again, "rss"}, point{two, again, "rss"}),
				"memfit sets MALLOC_ARENA_MAX=2 for Ruby"},
		},
		Pictures: []Picture{rssPicture("ruby", "RSS of a multi-threaded Ruby server", []string{work, again, trim},
			usual, two, trims, memfit)},
	}
}
