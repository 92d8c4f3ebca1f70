// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "fmt"

// nodeNoTLS explains why two arenas save less here than in the article.
const nodeNoTLS = "the 70 MiB that two arenas saved there were TLS's and HTTP's, which are not here"

// The arms of the article's table, and those with memfit.
const (
	nodeNone   = "default"
	nodeArenas = "arenas"
	nodeCap    = "cap"
	nodeBoth   = "both"
	nodeMemfit = "memfit"
	nodeTwo    = "memfit-both"
	nodeFleet  = "fleet"
	// A service that bursts to twice its limit, without memfit and with rescue.
	nodeTight   = "tight"
	nodeRescued = "rescued"
)

// nodeTightMi is the limit of those two: the service needs about 150 MiB between bursts, and twice the limit in one.
const nodeTightMi = 224

func nodeStory() Story {
	heap := map[string]string{"NODE_OPTIONS": "--max-old-space-size=256"}
	arenas := map[string]string{"MALLOC_ARENA_MAX": "2"}
	sizing := "  runtime: {type: NodeJS, version: \"20\"}\n  sizing: {mode: Recommend, limit: {min: 64Mi, max: 2Gi}}"
	tight := map[string]string{"NODE_OPTIONS": "--max-old-space-size=2048", "SESSIONS_MIB": "40", "BUFFERS_MIB": "20"}
	burst, collect := "burst", "collect"
	return Story{
		Name: "node", Title: "Where did 400 MiB go?", Program: "messages.js", Image: "memfit.test/node:20",
		Command: []string{"node", "/app/messages.js"},
		Found: "One of sixty pods of a Node.js service holds 640 MiB after a burst of fetches, twice as much as " +
			"the others. V8 reports 129 MiB. A forced collection takes RSS from 568 to 316 MiB. With " +
			"MALLOC_ARENA_MAX=2 it remains at 576 MiB, with --max-old-space-size=256 it falls to 350, with " +
			"both to 280.",
		Profiles: map[string]string{
			"nodejs": sizing, "nodejs-cap": sizing + "\n  tuning: {heapLimit: 256Mi}",
			"nodejs-both": sizing + "\n  tuning: {heapLimit: 256Mi, arenaMax: 2}",
			"nodejs-rescue": "  runtime: {type: NodeJS, version: \"20\"}\n" +
				"  sizing: {mode: InPlace, rescue: Enabled, limit: {max: 2Gi}}",
		},
		Arms: []Arm{
			{Name: nodeNone, Desc: "limit 4Gi, so that V8 takes up to 2 GiB by itself; no settings", LimitMi: 4096},
			{Name: nodeArenas, Desc: "MALLOC_ARENA_MAX=2", LimitMi: 4096, Env: arenas, Wide: true},
			{Name: nodeCap, Desc: "--max-old-space-size=256", LimitMi: 4096, Env: heap, Wide: true},
			{Name: nodeBoth, Desc: "both", LimitMi: 4096, Wide: true,
				Env: map[string]string{"NODE_OPTIONS": heap["NODE_OPTIONS"], "MALLOC_ARENA_MAX": "2"}},
			{Name: nodeMemfit, Desc: "with memfit, heapLimit: 256Mi", LimitMi: 4096, Profile: "nodejs-cap"},
			{Name: nodeTwo, Desc: "with memfit, heapLimit: 256Mi and arenaMax: 2", LimitMi: 4096, Profile: "nodejs-both"},
			{Name: nodeTight, Desc: "a smaller live set and a limit that it needs twice in a burst", LimitMi: nodeTightMi,
				Env: tight, MayDie: true, Wide: true},
			{Name: nodeRescued, Desc: "the same with memfit and sizing.rescue", LimitMi: nodeTightMi, Env: tight,
				Profile: "nodejs-rescue", MayDie: true, Wide: true},
			{Name: nodeFleet, Desc: "one of six replicas", LimitMi: 4096, Profile: "nodejs", Replicas: 6},
		},
		Steps: []Step{
			{Name: burst, Path: "burst?pages=80", LeanPath: "burst?pages=160", Inspect: true},
			// V8 releases pages in threads of its own, which may have to wait for a processor.
			{Name: collect, Path: "collect", Settle: 15e9, Predicted: true, Arms: []string{nodeNone}},
		},
		Checked: Place{nodeFleet, burst},
		Needed: []Need{
			{"which pod is the sick one", `POD: \d+Mi resident at .*its replicas \d+Mi|Pod POD uses \d+Mi, its replicas \d+Mi`},
			{"that it is V8's heap, and not native memory", `\d+Mi V8 heap|V8 heap +\d+Mi`},
			{"how much of it a full collection would give back", `full collection may give back up to \d+Mi`},
			{"what to set", `lower one \(heapLimit`},
		},
		Known: "memfit proposes no value for a lower cap. What a collection returns is a range, because garbage is " +
			"unknown before it is collected.",
		Expect: []Expectation{
			{"RSS with MALLOC_ARENA_MAX=2 / no settings", "576 of 576 MiB", 1, 0.2,
				ratio(point{nodeArenas, burst, "rss"}, point{nodeNone, burst, "rss"}), ""},
			{"RSS with the heap cap / no settings", "350 of 576 MiB", 0.61, 0.2,
				ratio(point{nodeCap, burst, "rss"}, point{nodeNone, burst, "rss"}), ""},
			{"RSS with both / no settings", "280 of 576 MiB", 0.61, 0.2,
				ratio(point{nodeBoth, burst, "rss"}, point{nodeNone, burst, "rss"}),
				nodeNoTLS + ": what the cap alone saves is left, 350 of 576"},
			{"RSS after a forced collection / before", "316 of 568 MiB", 0.56, 0.2,
				ratio(point{nodeNone, collect, "rss"}, point{nodeNone, beforeStep(collect), "rss"}), ""},
			{"RSS with memfit's heapLimit: 256Mi / no settings", "350 of 576 MiB", 0.61, 0.2,
				ratio(point{nodeMemfit, burst, "rss"}, point{nodeNone, burst, "rss"}), ""},
			{"Peak with memfit's heapLimit and arenaMax: 2 / the same settings by hand", "-", 1, 0.15,
				ratio(point{nodeTwo, burst, "peak"}, point{nodeBoth, burst, "peak"}), "memfit sets what the author set"},
			{"RSS with memfit's arenaMax: 2 beside the cap / the cap alone",
				"280 of 350 MiB", 0.8, eitherWay, ratio(point{nodeTwo, burst, "rss"}, point{nodeMemfit, burst, "rss"}),
				nodeNoTLS},
			{"Peak with memfit's arenaMax: 2 beside the cap / the cap alone", "-", 1, 0.15,
				ratio(point{nodeTwo, burst, "peak"}, point{nodeMemfit, burst, "peak"}), nodeNoTLS},
			{"glibc arenas as the agent reports them, the same comparison", "-", 0.8, eitherWay,
				partsRatio(Place{nodeTwo, burst}, Place{nodeMemfit, burst}, "glibc arenas"), nodeNoTLS},
			{"OOM-killed in the first burst to twice the limit (1: yes)", "-", 1, 0, killedArm(nodeTight),
				"the articles' author gave it 4 GiB"},
			{"The same with sizing.rescue", "-", 0, 0, killedArm(nodeRescued), "no article has it"},
			{"Peak of that burst / the limit before it", "-", 2, 0.8, burstOfLimit, "no article has it"},
			{"memfit's prediction of a full collection (1: between its bounds)", "-", 1, 0.03,
				predicted(nodeNone, collect, "collect"), "no article predicts"},
		},
		Pictures: []Picture{rssPicture("node", "RSS after the burst", []string{burst, collect},
			nodeNone, nodeArenas, nodeCap, nodeBoth, nodeMemfit, nodeTwo)},
	}
}

// killedArm measures 1 where an arm was killed, otherwise 0.
func killedArm(arm string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		how, dead := r.died(arm)
		m := Measured{From: how}
		if dead {
			m.Value = 1
		}
		return m, nil
	}
}

// burstOfLimit divides the peak of a burst that the service survived by its first limit.
func burstOfLimit(r *Run) (Measured, error) {
	peak, err := r.Value(nodeRescued, "burst", "peak")
	if err != nil {
		return Measured{}, err
	}
	return Measured{peak / (nodeTightMi * mebi), fmt.Sprintf("%s of %dMi", mib(peak), nodeTightMi)}, nil
}
