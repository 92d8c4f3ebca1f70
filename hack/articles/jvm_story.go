// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

func jvmStory() Story {
	const usual, memfit = "default", "memfit"
	const newer, newerMemfit = "default-25", "memfit-25"
	const work, again, trim, arenas = "work", "again", "trim", "glibc arenas"
	const jdk, jre = "memfit.test/jdk:17", "memfit.test/jre:25"
	profile := func(version string) string {
		return "  runtime: {type: JVM, version: \"" + version + "\"}\n  tuning: {trimInterval: 5s}\n" +
			"  sizing: {mode: Recommend, limit: {min: 64Mi, max: 4Gi}}"
	}
	return Story{
		Name: "jvm", Title: "JVM memory leak > native memory > glibc malloc", Program: "Native.java",
		Image: jdk,
		// Not `java Native.java`: that compiles in the same process, which keeps the compiler's memory. All versions run
		// the classes that 17 compiled.
		BuildImage: jdk, Build: []string{"javac", "-nowarn", "-d", "/built", "/app/Native.java"},
		Command: []string{"java", "-cp", "/built", "Native"},
		Found: "The memory of a JVM grows steadily while heap, metaspace and direct buffers do not. A table of " +
			"its regions shows 259 malloc arenas with 2.1 GiB. `jcmd System.trim_native_heap` reduces them to " +
			"1.3 GiB and changes nothing else; from 17.0.9 -XX:TrimNativeHeapInterval does so periodically.",
		Profiles: map[string]string{"jvm": profile("17"), "jvm-25": profile("25")},
		Arms: []Arm{
			{Name: usual, Desc: "limit 1536Mi, no settings", LimitMi: 1536},
			{Name: memfit, Desc: "limit 1536Mi, with memfit, trimInterval: 5s", LimitMi: 1536, Profile: "jvm"},
			{Name: newer, Desc: "Java 25, limit 1536Mi, no settings", LimitMi: 1536, Image: jre, Wide: true},
			{Name: newerMemfit, Desc: "Java 25, limit 1536Mi, with memfit, trimInterval: 5s", LimitMi: 1536, Image: jre,
				Profile: "jvm-25", Wide: true},
		},
		Steps: []Step{
			{Name: work, Path: "work?mib=600", LeanPath: "work?mib=200"},
			{Name: again, Path: "work?mib=600", LeanPath: "work?mib=200", Settle: 15e9, Inspect: true},
			{Name: trim, Path: "trim", Predicted: true, Inspect: true, Arms: []string{usual, newer}},
		},
		Checked: Place{usual, again},
		Needed: []Need{
			{"that it is not the Java heap", `\d+Mi Java heap|Java heap +\d+Mi`},
			{"that it is glibc's arenas, and how much of them is free", `(?i)glibc arenas.*(free|nothing)`},
			{"how much a trim would give back", `TrimNativeHeapInterval would give back \d+Mi`},
			{"what to set so that it stays so", `TrimNativeHeapInterval: \d+Mi .*memfit sets it`},
		},
		Known: "memfit does not report which library allocates: that needs a profiler.",
		Expect: []Expectation{
			{"glibc arenas after the trim / before", "1363 of 2170 MiB", 0.63, 0.15,
				partRatio(usual, beforeStep(trim), trim, arenas), ""},
			{"Java heap after the trim / before", "10777 of 10778 MiB", 1, 0.05,
				partRatio(usual, beforeStep(trim), trim, "Java heap"), ""},
			{"memfit's prediction of the trim (1: exact)", "-", 1, 0.03, predicted(usual, trim, "trim"),
				"no article predicts"},
			{"Java 25: glibc arenas after the trim / before", "1363 of 2170 MiB (on 17)", 0.63, 0.15,
				partRatio(newer, beforeStep(trim), trim, arenas), ""},
			{"Java 25: memfit's prediction of the trim (1: exact)", "-", 1, 0.03, predicted(newer, trim, "trim"),
				"no article predicts"},
			{"RSS with memfit's TrimNativeHeapInterval / RSS after the trim by hand", "-", 1, 0.15,
				ratio(point{memfit, again, "rss"}, point{usual, trim, "rss"}), "the article sets it without a number"},
			{"Java 25: the same", "-", 1, 0.15, ratio(point{newerMemfit, again, "rss"}, point{newer, trim, "rss"}),
				"the article sets it without a number"},
		},
		Pictures: []Picture{rssPicture("jvm", "RSS of a JVM whose native memory is freed, not given back",
			[]string{work, again, trim}, usual, memfit, newer, newerMemfit)},
	}
}
