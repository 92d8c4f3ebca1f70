// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "fmt"

func udpStory() Story {
	const usual, keeps, memfit, threshold = "default", "keeps", "memfit", "memfit-threshold"
	const load, again, collect = "load", "again", "collect"
	keep := map[string]string{"KEEP": "1"}
	sizing := "  runtime: {type: NodeJS, version: \"20\"}\n  sizing: {mode: Recommend, limit: {min: 64Mi, max: 2Gi}}"
	return Story{
		Name: "udp", Title: "Why we patched node.js", Program: "datagrams.js", Image: "memfit.test/node:20",
		Command: []string{"node", "/app/datagrams.js"},
		Found: "A statsd on Node.js 0.6 takes a gigabyte: each datagram gets a buffer of its own, and freed " +
			"buffers leave holes. RSS goes from 57 to 100 MiB under load and remains at 59 MiB and more, " +
			"although garbage is collected every two seconds. With buffers from slabs (Node.js 0.6.8 and " +
			"later) it is 15 to 18 MiB.",
		Profiles: map[string]string{"nodejs": sizing, "nodejs-threshold": sizing + "\n  tuning: {trimThreshold: 128Ki}"},
		Arms: []Arm{
			{Name: usual, Desc: "limit 512Mi: a Node.js that has the patch", LimitMi: 512},
			{Name: keeps, Desc: "keeps a slice of each datagram for the interval: small buffers live long again", LimitMi: 512,
				Env: keep},
			{Name: memfit, Desc: "the same with memfit", LimitMi: 512, Env: keep, Profile: "nodejs"},
			{Name: threshold, Desc: "the same with memfit, trimThreshold: 128Ki", LimitMi: 512, Env: keep,
				Profile: "nodejs-threshold"},
		},
		Steps: []Step{
			{Name: load, Path: "load?packets=150000"},
			{Name: again, Path: "load?packets=150000", Settle: 5e9, Inspect: true},
			{Name: collect, Path: "collect", Settle: 5e9, Predicted: true, Inspect: true,
				Arms: []string{keeps, memfit, threshold}},
		},
		Checked: Place{memfit, collect},
		Needed: []Need{
			{"that memory does not come down after the load", `remains after a load`},
			{"whether it is V8's heap or native memory", `Mi V8 heap|V8 heap +\S+Mi`},
			{"which version runs", `20\.\d+\.\d+`},
			{"what would give it back, and how much", `(would give back|may give back up to) \d+Mi`},
		},
		Known: "memfit does not report that datagram buffers leave the holes: it reads the allocator, not its " +
			"callers.",
		Expect: []Expectation{
			{"With the patch: RSS after the load / before", "17.6 of 14.6 MiB", 1.2, 0.2,
				ratio(point{usual, again, "rss"}, point{usual, "start", "rss"}), ""},
			{"Without slabs: peak under load / before", "100 of 57 MiB (in the middle of the log)", 3, 1.5,
				ratio(point{keeps, again, "peak"}, point{keeps, "start", "rss"}),
				"the article shows no fresh process; its process ends at a gigabyte, seventeen times as much"},
			{"Without slabs: RSS after load and collection / the peak", "58.7 of 100.3 MiB", 0.59, 0.2,
				ratio(point{keeps, collect, "rss"}, point{keeps, again, "peak"}), ""},
			{"V8 heap, share of the RSS that remains", "-", 0.2, 0.2, partShare(keeps, collect, "V8 heap"),
				"the article does not look inside"},
			{"memfit's prediction of a full collection (1: between its bounds)", "-", 1, 0.03,
				predicted(memfit, collect, "collect"), "no article predicts"},
		},
		Pictures: []Picture{rssPicture("udp", "RSS of a server of datagrams", []string{"start", again, collect},
			usual, keeps, memfit, threshold)},
		Comment: fmt.Sprintf("%s is Node.js 20, which has the patch. %s keeps a slice of each datagram, so that small "+
			"buffers live as long as the article's and leave the same holes.", usual, keeps),
	}
}
