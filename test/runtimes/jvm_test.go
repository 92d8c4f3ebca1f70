//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// trimming is a JDK's support of -XX:TrimNativeHeapInterval.
type trimming int

const (
	noTrim           trimming = iota // unsupported
	experimentalTrim                 // needs -XX:+UnlockExperimentalVMOptions
	productTrim
)

func jdkEdition(version string, fetch func(*testing.T) string, trim trimming) edition {
	e := edition{
		name: "jdk-" + version, runtime: v1alpha1.RuntimeJVM, version: version, fetch: fetch,
		probe:  []string{"-XX:+PrintFlagsFinal", "-XshowSettings:properties", "-version"},
		facts:  javaFacts,
		trials: func(t *testing.T, p *program) []trial { return jvmTrials(t, p, trim) },
		controls: []control{
			{"a heap too small to start with",
				"JAVA_TOOL_OPTIONS=-XX:MaxRAM=16m -XX:MaxRAMPercentage=10.0 -XX:MinRAMPercentage=10.0", 1},
			{"a percentage above 100", "JAVA_TOOL_OPTIONS=-XX:MaxRAMPercentage=150", 1},
			{"a quote that is not closed", `JAVA_TOOL_OPTIONS=-Dgreeting="hello`, 1},
		},
	}
	switch trim {
	case noTrim:
		e.controls = append(
			e.controls, control{"an unknown flag without a guard", "JAVA_TOOL_OPTIONS=-XX:TrimNativeHeapInterval=60000", 1},
		)
	case experimentalTrim:
		e.controls = append(
			e.controls,
			control{
				"the guard that is not enough",
				"JAVA_TOOL_OPTIONS=-XX:+IgnoreUnrecognizedVMOptions -XX:TrimNativeHeapInterval=60000", 1,
			},
		)
	case productTrim:
		e.controls = append(
			e.controls, control{"a unit where milliseconds are meant", "JAVA_TOOL_OPTIONS=-XX:TrimNativeHeapInterval=60s", 1},
		)
	}
	return e
}

// debianJDK is Debian's OpenJDK 17, of any update: 17.0.15 and later have the flag as a product flag.
func debianJDK() edition {
	const launcher = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
	e := jdkEdition("17", fromDebian(launcher, "openjdk-17-jre-headless"), productTrim)
	e.name = "jdk-17-debian"
	return e
}

var (
	finalFlag = regexp.MustCompile(`(?m)^ *[a-z0-9_]+ (\w+) +:?= +(\S+) `)
	property  = regexp.MustCompile(`(?m)^ +(greeting|java\.version) = (.*)$`)
)

// javaFacts are the final flags and the properties of interest.
func javaFacts(output string) map[string]string {
	flags := map[string]string{}
	for _, m := range finalFlag.FindAllStringSubmatch(output, -1) {
		flags[m[1]] = m[2]
	}
	facts := map[string]string{}
	for _, name := range []string{
		"TrimNativeHeapInterval", "MaxRAMPercentage", "MinRAMPercentage", "G1PeriodicGCInterval", "UseSerialGC",
	} {
		facts[name] = flags[name]
	}
	if flags["MaxHeapSize"] == "209715200" || flags["MaxHeapSize"] == "314572800" {
		facts["MaxHeapSize"] = flags["MaxHeapSize"] // set by a user in a trial; other values depend on this machine
	}
	if ram, err := strconv.ParseInt(flags["MaxRAM"], 10, 64); err == nil && ram <= 1<<30 { // simulated: see onNode
		facts["heap"] = flags["MaxHeapSize"]
	}
	for _, m := range property.FindAllStringSubmatch(output, -1) {
		facts[m[1]] = m[2]
	}
	return facts
}

func jvmTrials(t *testing.T, p *program, trim trimming) []trial {
	t.Helper()
	alone := p.run(t, nil, nil)
	if alone.facts["MaxRAMPercentage"] != "25.000000" {
		t.Fatalf(
			"without settings the JVM has MaxRAMPercentage %q, want 25.000000 (exit code %d)\n%s",
			alone.facts["MaxRAMPercentage"], alone.exit, tail(alone.output),
		)
	}
	trimmed := func(milliseconds string, more ...string) map[string]string {
		want := map[string]string{"TrimNativeHeapInterval": milliseconds, "MaxRAMPercentage": "25.000000"}
		if trim == noTrim {
			want["TrimNativeHeapInterval"] = ""
		}
		for i := 0; i < len(more); i += 2 {
			want[more[i]] = more[i+1]
		}
		return want
	}
	minute := func(more ...string) map[string]string { return trimmed("60000", more...) }
	off := alone.facts["TrimNativeHeapInterval"] // "0", or "" where the flag is unknown or locked
	percent := func(p int32) v1alpha1.TuningSpec { return v1alpha1.TuningSpec{HeapPercent: &p} }
	every := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	options := func(text string) map[string]string { return map[string]string{"JAVA_TOOL_OPTIONS": text} }
	periodic := "300000"
	if major(p.version) < 12 {
		periodic = alone.facts["G1PeriodicGCInterval"]
	}

	var trials []trial
	for _, limit := range []string{"", "64Mi", "256Mi", "1Gi", "4Gi", "32Gi"} {
		trials = append(trials, trial{name: "limit " + limit, limit: limit, want: minute()})
	}
	// With any declared version, also a wrong one, the guards let every HotSpot start.
	for _, declared := range []string{"", "8", "11", "17.0.9", "20", "21", "25"} {
		want := minute("MaxRAMPercentage", "60.000000")
		if declared == "8" || declared == "11" || declared == "20" { // the flag is omitted
			want["TrimNativeHeapInterval"] = off
		}
		trials = append(trials,
			trial{name: "declared as " + declared, limit: "1Gi", tuning: percent(60), want: want,
				runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: declared}})
	}
	// The resulting heap in MiB; HotSpot rounds it up to 2 MiB.
	for _, c := range []struct {
		limit, shm  string
		percent     int32
		ram, heapIs int64
	}{
		{"128Mi", "", 60, 128, 78}, {"256Mi", "", 40, 256, 104}, {"256Mi", "", 60, 256, 154}, {"400Mi", "", 30, 400, 120},
		{"512Mi", "", 60, 512, 308}, {"512Mi", "64Mi", 60, 512, 270}, {"1Gi", "", 10, 1024, 104}, {"1Gi", "", 70, 1024, 718},
	} {
		trials = append(trials, trial{
			name: fmt.Sprintf("the heap at %d %% of %s less %s", c.percent, c.limit, c.shm), limit: c.limit, shm: c.shm,
			tuning:  percent(c.percent),
			machine: onNode(c.ram), want: minute("MaxRAMPercentage", "", "heap", fmt.Sprint(c.heapIs<<20)),
		})
		delete(trials[len(trials)-1].want, "MaxRAMPercentage")
	}
	trials = append(trials, trial{ // "Too small maximum heap" with it
		name: "heapPercent 10 of 16Mi", limit: "16Mi", tuning: percent(10), machine: onNode(16), want: minute(),
	})
	return append(trials,
		trial{
			name: "heapPercent 60 of 128Mi", limit: "128Mi", tuning: percent(60),
			want: minute("MaxRAMPercentage", "60.000000", "MinRAMPercentage", "60.000000"),
		},
		trial{
			name: "heapPercent 60 of 512Mi", limit: "512Mi", tuning: percent(60),
			want: minute("MaxRAMPercentage", "60.000000", "MinRAMPercentage", "60.000000"),
		},
		trial{
			name: "heapPercent 100 of 32Gi", limit: "32Gi", tuning: percent(100), want: minute("MaxRAMPercentage", "100.000000"),
		},
		trial{name: "heapPercent without a limit", tuning: percent(60), want: minute()},
		trial{
			name: "user: -Xmx", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", "-Xmx300m"), tuning: percent(60),
			want: minute("MaxHeapSize", "314572800"),
		},
		trial{
			name: "user: -Xmx on the command line", limit: "1Gi", args: []string{"-Xmx200m"}, tuning: percent(60),
			want: minute("MaxHeapSize", "209715200"),
		},
		trial{
			name: "user: -Xms equal to -Xmx", limit: "1Gi", args: []string{"-Xms200m", "-Xmx200m"},
			want: minute("MaxHeapSize", "209715200"),
		},
		trial{
			name: "user: own percentage", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=33"),
			tuning: percent(60), want: minute("MaxRAMPercentage", "33.000000"),
		},
		trial{
			name: "user: own percentage on the command line", limit: "1Gi", args: []string{"-XX:MaxRAMPercentage=33"},
			tuning: percent(60), want: minute("MaxRAMPercentage", "33.000000"),
		},
		trial{
			name: "user: own percentage in JDK_JAVA_OPTIONS", limit: "1Gi",
			env: vars("JDK_JAVA_OPTIONS", "-XX:MaxRAMPercentage=33"), tuning: percent(60),
			want: minute("MaxRAMPercentage", "33.000000"),
		},
		trial{
			name: "user: own trim interval", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", "-XX:TrimNativeHeapInterval=5000"),
			unchanged: true,
		},
		trial{
			name: "user: own trim interval on the command line", limit: "1Gi",
			args: []string{"-XX:TrimNativeHeapInterval=5000"}, unchanged: true,
		},
		trial{
			name: "user: quoted property stays", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", `-Dgreeting="two words"`),
			want: minute("greeting", "two words"),
		},
		trial{
			name: "user: options on several lines", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", "-Xmx300m\n-Dgreeting=hi\n"),
			want: minute("MaxHeapSize", "314572800", "greeting", "hi"),
		},
		trial{
			name: "user: tabs between options", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", "-Xmx300m\t-Dgreeting=hi"),
			want: minute("MaxHeapSize", "314572800", "greeting", "hi"),
		},
		trial{
			name: "user: quote never closed", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", `-Dgreeting="hi`), unchanged: true,
		},
		trial{name: "user: empty JAVA_TOOL_OPTIONS", limit: "1Gi", env: vars("JAVA_TOOL_OPTIONS", ""), want: minute()},
		trial{
			name: "user: the guard switched off", limit: "1Gi", args: []string{"-XX:-IgnoreUnrecognizedVMOptions"},
			unchanged: true,
		},
		trial{
			name: "user: options locked", limit: "1Gi", args: []string{"-XX:-UnlockExperimentalVMOptions"}, unchanged: true,
		},
		trial{
			name: "user: a collector", limit: "1Gi", args: []string{"-XX:+UseSerialGC"}, tuning: g1Periodic(5 * time.Minute),
			want: minute("UseSerialGC", "true"),
		},
		trial{name: "user: value from a ConfigMap", limit: "1Gi", fromConfigMap: options("-Xmx300m"), tuning: percent(60),
			unchanged: true,
			want:      map[string]string{"MaxHeapSize": "314572800", "TrimNativeHeapInterval": off}},
		trial{
			name: "trimInterval 30s", limit: "1Gi", tuning: v1alpha1.TuningSpec{TrimInterval: every(30 * time.Second)},
			want: trimmed("30000"),
		},
		trial{name: "trimInterval off", limit: "1Gi", tuning: v1alpha1.TuningSpec{TrimInterval: every(0)}, unchanged: true},
		trial{
			name: "g1PeriodicGCInterval 5m", limit: "4Gi", tuning: g1Periodic(5 * time.Minute),
			want: minute("G1PeriodicGCInterval", periodic),
		},
		trial{
			name: "declared OpenJ9, is HotSpot", limit: "1Gi", tuning: percent(60), runtime: variant(v1alpha1.VariantOpenJ9),
			unchanged: true,
		},
		trial{
			name: "declared native image, is HotSpot", limit: "1Gi", tuning: percent(60),
			runtime: variant(v1alpha1.VariantNativeImage), unchanged: true,
		},
		trial{
			name: "buildpack image", limit: "1Gi", tuning: percent(60), runtime: variant(v1alpha1.VariantBuildpack),
			want: minute(),
		},
		trial{
			name: "declared wrong: Node.js", limit: "1Gi", runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS},
			unchanged: true,
		},
		trial{
			name: "nothing declared: the command says java", limit: "1Gi",
			runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto}, want: minute(),
		},
		trial{name: "mode DryRun", limit: "1Gi", tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDryRun}, unchanged: true},
	)
}

// onNode sets the memory that a JVM reads from its node or cgroup, in MiB. No other option overrides _JAVA_OPTIONS.
func onNode(mib int64) []string { return []string{fmt.Sprintf("_JAVA_OPTIONS=-XX:MaxRAM=%dm", mib)} }

func g1Periodic(d time.Duration) v1alpha1.TuningSpec {
	return v1alpha1.TuningSpec{JVM: &v1alpha1.JVMTuning{G1PeriodicGCInterval: &metav1.Duration{Duration: d}}}
}

func variant(v v1alpha1.RuntimeVariant) *v1alpha1.RuntimeSpec {
	return &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Variant: v}
}
