// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// Check finds an invalid value of the user: the process does not start with it, ignores it, or is OOM-killed.
type Check struct {
	// Env is the variable whose whole value is checked. Empty: the check is about Flag.
	Env     string
	Flag    string // the prefix of a word on the command line or in a variable, after [Runtime.Fold]: "-Xmx"
	Against string // the flag of [Own.Other]; empty: none
	// Heap returns the heap that the value permits; 0: none, or unknown. nil: the setting is not a number of bytes.
	Heap func(value string) memory.Bytes
	// Problem returns the effect of the value and what to set instead; the caller prepends the setting. Empty: valid.
	Problem func(Own, Facts) string
}

// Own is a value that the user set.
type Own struct {
	Value  string // the variable's value, or the text after the flag
	Direct bool   // the runtime reads the variable itself ([Runtime.Sources]), so no script can change the value
	Other  string // the effective value of [Check.Against]; empty: none
}

// killedFirst is the effect of a heap cap above the memory limit.
const killedFirst = "so the kernel kills the process before the heap reaches it"

func aboveLimit(f Facts, advised string) string {
	return fmt.Sprintf("is above the memory limit of %s, %s: set at most %s, or raise the limit", f.Cgroup, killedFirst,
		advised)
}

// goChecks check GOMEMLIMIT, which has Go's units, not Kubernetes units.
var goChecks = []Check{{Env: "GOMEMLIMIT", Heap: goMemory, Problem: func(own Own, f Facts) string {
	limit, unlimited, ok := goBytes(own.Value)
	switch {
	case !ok:
		return "stops a Go program at start (exit code 2, malformed GOMEMLIMIT): set " + goSpelling(own.Value)
	case unlimited:
		return ""
	case limit == 0:
		return "makes the collector of a Go program run all the time: remove it, or set the number of bytes"
	case f.Cgroup > 0 && limit > f.Cgroup:
		return aboveLimit(f, fmt.Sprintf("GOMEMLIMIT=%dMiB", f.Cgroup.Percent(goPercent(f)).MiB()))
	}
	return ""
}}}

var (
	goForm     = regexp.MustCompile(`^([0-9]{1,19})(?:([KMGT])iB|B)?$`)
	kubeBinary = regexp.MustCompile(`^([0-9]{1,12})([KMGT])i?$`)
)

// goBytes parses a value like Go's runtime (parseByteCount in runtime/string.go); ok is false for an invalid one.
func goBytes(text string) (b memory.Bytes, unlimited, ok bool) {
	if text == "" || text == "off" {
		return 0, true, true
	}
	m := goForm.FindStringSubmatch(text)
	if m == nil {
		return 0, false, false
	}
	b, ok = scaled(m[1], m[2])
	return b, false, ok
}

// scaled returns a number times a binary prefix ("", K, M, G or T); ok is false above 63 bits.
func scaled(digits, prefix string) (b memory.Bytes, ok bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	shift := 0
	if prefix != "" {
		shift = 10 * (1 + strings.Index("KMGT", prefix))
	}
	if err != nil || n<<shift>>shift != n || n<<shift < 0 {
		return 0, false
	}
	return memory.Bytes(n << shift), true
}

func goSpelling(value string) string {
	if m := kubeBinary.FindStringSubmatch(value); m != nil {
		return "GOMEMLIMIT=" + m[1] + m[2] + "iB"
	}
	return "a number of bytes or a unit of Go, for example GOMEMLIMIT=900MiB"
}

// v8Checks check the size of V8's old space, in MiB. variable is the one from which the runtime reads flags.
func v8Checks(variable string) []Check {
	heap := func(value string) memory.Bytes { return v8OldSpace(oldSpaceFlag+"="+value, 0) }
	return []Check{{Flag: oldSpaceFlag + "=", Heap: heap, Problem: func(own Own, f Facts) string {
		n, err := strconv.ParseInt(own.Value, 10, 64)
		switch {
		case own.Value == "": // V8's own default
			return ""
		case err != nil && own.Direct:
			return "stops the process at start, because " + variable + " takes a whole number of MiB: set " + oldSpaceFlag +
				"=" + mebibytes(own.Value)
		case err != nil || n <= 0: // no check: the effect is unknown
			return ""
		case f.Cgroup > 0 && n > int64(f.Cgroup.CeilTo(memory.MiB)/memory.MiB):
			return "(MiB) " + aboveLimit(f, fmt.Sprintf("%s=%d", oldSpaceFlag, f.Cgroup.Percent(nodePercent).MiB()))
		}
		return ""
	}}}
}

var sizeStart = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,3})?)([mMgG])`)

// mebibytes converts a size with a unit to whole MiB; "512" for an unknown unit.
func mebibytes(text string) string {
	m := sizeStart.FindStringSubmatch(text)
	if m == nil {
		return "512"
	}
	size, _ := strconv.ParseFloat(m[1], 64) // the pattern allows only numbers
	if strings.ToUpper(m[2]) == "G" {
		size *= 1024
	}
	return strconv.FormatInt(max(int64(size), 1), 10)
}

// jvmChecks check the size of the heap.
var jvmChecks = []Check{
	{Flag: "-Xmx", Heap: jvmHeap, Problem: jvmMaximum("-Xmx")},
	{Flag: "-XX:MaxHeapSize=", Heap: jvmHeap, Problem: jvmMaximum("-XX:MaxHeapSize=")},
	{Flag: "-Xms", Against: "-Xmx", Problem: jvmMinimum},
	{Flag: maxRAMName + "=", Problem: jvmShare},
	{Flag: minRAMName + "=", Problem: jvmShare},
}

func jvmMaximum(flag string) func(Own, Facts) string {
	return func(own Own, f Facts) string {
		heap, ok := jvmBytes(own.Value)
		switch {
		case otherFlag(own.Value):
			return ""
		case !ok:
			return jvmMalformed(flag, own.Value)
		case f.Cgroup > 0 && heap > f.Cgroup:
			return aboveLimit(f, fmt.Sprintf("%s%dm", flag, f.Cgroup.Percent(heapPercentAdvised(f.Cgroup)).MiB()))
		}
		return ""
	}
}

func jvmMinimum(own Own, f Facts) string {
	least, ok := jvmBytes(own.Value)
	most, known := jvmBytes(own.Other)
	switch {
	case otherFlag(own.Value):
		return ""
	case !ok:
		return jvmMalformed("-Xms", own.Value)
	case known && own.Other != "" && least > most:
		return fmt.Sprintf("is above -Xmx%s, so the JVM does not start (exit code 1): set -Xms to %s or less", own.Other,
			own.Other)
	case own.Other == "" && f.Cgroup > 0 && least > f.Cgroup:
		return aboveLimit(f, fmt.Sprintf("-Xms%dm", f.Cgroup.Percent(heapPercentAdvised(f.Cgroup)).MiB()))
	}
	return ""
}

// otherFlag reports whether value is the end of a longer flag, such as OpenJ9's -Xmso256k.
func otherFlag(value string) bool { return value != "" && (value[0] < '0' || value[0] > '9') }

// plainWord matches words without quotes or braces. Other words may be part of a nested text, such as JSON.
var plainWord = regexp.MustCompile(`^[-+]?[0-9A-Za-z.%]*$`)

func jvmMalformed(flag, value string) string {
	if !plainWord.MatchString(value) {
		return ""
	}
	return fmt.Sprintf("stops the JVM at start (exit code 1), which takes a whole number with unit k, m or g: set %s%sm",
		flag, mebibytes(value))
}

var jvmForm = regexp.MustCompile(`^([0-9]{1,19})([KMGT]?)$`)

// jvmBytes parses a size like HotSpot; ok is false for an invalid one. Hexadecimal sizes become 0, which all checks
// accept.
func jvmBytes(text string) (b memory.Bytes, ok bool) {
	text = strings.ToUpper(text)
	if strings.HasPrefix(text, "0X") {
		return 0, true
	}
	m := jvmForm.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	return scaled(m[1], m[2])
}

func jvmHeap(text string) memory.Bytes {
	b, _ := jvmBytes(text)
	return b
}

func jvmShare(own Own, _ Facts) string {
	percent, err := strconv.ParseFloat(own.Value, 64)
	switch {
	case !plainWord.MatchString(own.Value):
		return ""
	case err != nil || percent < 0 || percent > 100:
		return "stops the JVM at start (exit code 1): set a number from 1.0 to 100.0"
	case percent > 0 && percent < 1:
		return fmt.Sprintf("is %s %% of the limit and not %g %%: set %.1f", own.Value, 100*percent, 100*percent)
	}
	return ""
}

// dotnetChecks check numbers that .NET parses as hexadecimal, with and without 0x.
var dotnetChecks = []Check{
	{Env: dotnetPercentName, Problem: dotnetShare},
	{Env: "COMPlus_GCHeapHardLimitPercent", Problem: dotnetShare},
	{Env: dotnetLimitName, Heap: dotnetHeap, Problem: dotnetMaximum},
	{Env: "COMPlus_GCHeapHardLimit", Heap: dotnetHeap, Problem: dotnetMaximum},
}

func dotnetShare(own Own, _ Facts) string {
	percent := hex(own.Value)
	if percent < 100 {
		return ""
	}
	text := fmt.Sprintf("is hexadecimal for %d %%, which .NET ignores: set ", percent)
	if meant, err := strconv.Atoi(own.Value); err == nil && meant > 0 && meant < 100 {
		return text + fmt.Sprintf("0x%X for %d %%", meant, meant)
	}
	return text + "0x1 to 0x63 (1 to 99 %)"
}

func dotnetHeap(text string) memory.Bytes { return memory.Bytes(hex(text)) }

func dotnetMaximum(own Own, f Facts) string {
	heap := dotnetHeap(own.Value)
	if f.Cgroup == 0 || heap <= f.Cgroup {
		return ""
	}
	text := fmt.Sprintf("is hexadecimal for %s, above the memory limit of %s, %s: set ", heap, f.Cgroup, killedFirst)
	if meant, err := strconv.ParseInt(own.Value, 10, 64); err == nil && meant > 0 && memory.Bytes(meant) <= f.Cgroup {
		return text + fmt.Sprintf("0x%X for %s", meant, memory.Bytes(meant))
	}
	return text + fmt.Sprintf("at most 0x%X", int64(f.Cgroup.Percent(dotnetPercentOwn)))
}
