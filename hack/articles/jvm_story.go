// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

func jvmStory() Story {
	const usual, memfit = "default", "memfit"
	const work, again, trim, arenas = "work", "again", "trim", "glibc arenas"
	return Story{
		Name: "jvm", Title: "JVM memory leak > native memory > glibc malloc", Program: "Native.java",
		Image: "memfit.test/jdk:17",
		// Not `java Native.java`: that compiles in the same process, which keeps what the compiler took.
		Command: []string{
			"sh", "-c", "javac -nowarn -d /tmp /app/Native.java 2>/dev/null; exec java -cp /tmp Native",
		},
		Met: "The memory of a JVM grows slowly and steadily; heap, metaspace and direct buffers do not. A table of " +
			"its regions shows 259 malloc arenas with 2.1 GiB. `jcmd System.trim_native_heap` takes them to 1.3 GiB and " +
			"leaves all else alone; from 17.0.9 -XX:TrimNativeHeapInterval does it by itself.",
		Profiles: map[string]string{"jvm": "  runtime: {type: JVM, version: \"17\"}\n  tuning: {trimInterval: 5s}\n" +
			"  sizing: {mode: Recommend, limit: {min: 64Mi, max: 4Gi}}"},
		Arms: []Arm{
			{Name: usual, Says: "limit 1536Mi, no settings", LimitMi: 1536},
			{Name: memfit, Says: "limit 1536Mi, with memfit, trimInterval: 5s", LimitMi: 1536, Profile: "jvm"},
		},
		Steps: []Step{
			{Name: work, Path: "work?mib=600"},
			{Name: again, Path: "work?mib=600", Settle: 15e9, Inspect: true},
			{Name: trim, Path: "trim", Predicted: true, Inspect: true, Arms: []string{usual}},
		},
		Look: Place{usual, again},
		Needed: []Need{
			{"that it is not the Java heap", `\d+Mi Java heap|Java heap +\d+Mi`},
			{"that it is glibc's arenas, and how much of them is free", `(?i)glibc arenas.*(free|nothing)`},
			{"how much a trim would give back", `TrimNativeHeapInterval would give back \d+Mi`},
			{"what to set so that it stays so", `TrimNativeHeapInterval: \d+Mi .*memfit sets it`},
		},
		Expect: []Expectation{
			{"Arenas after the trim, of before", "1363 of 2170 MiB", 0.63, 0.15,
				partRatio(usual, beforeStep(trim), trim, arenas), ""},
			{"Java heap after the trim, of before", "10777 of 10778 MiB", 1, 0.05,
				partRatio(usual, beforeStep(trim), trim, "Java heap"), ""},
			{"memfit's prediction of the trim (1: exact)", "-", 1, 0.03, predicted(usual, trim, "trim"),
				"no article predicts"},
			{"With memfit's TrimNativeHeapInterval, of what the trim by hand left", "-", 1, 0.15,
				ratio(point{memfit, again, "rss"}, point{usual, trim, "rss"}), "the article sets it without a number"},
		},
		Pictures: []Picture{rssPicture("jvm", "RSS of a JVM whose native memory is freed, not given back",
			[]string{work, again, trim}, usual, memfit)},
	}
}
