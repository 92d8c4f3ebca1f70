#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzzer of this module for FUZZTIME each, TEST_PARALLEL of them at a time with one worker each: each prints one block when it is
# done. An input that fails is kept by Go as a seed below testdata/fuzz of its package: commit it, and every `go test` tries it from then on.
# FUZZ_KEEP=10 keeps also the ten shortest of the inputs that reached new code.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-10s} keep=${FUZZ_KEEP:-0} only=${FUZZ:-.} jobs=${TEST_PARALLEL:-2}
cache=$(go env GOCACHE)/fuzz work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What reaches new code and what fails is made shorter first, in so many tries. Go takes a minute by default, which is all that CI gives a fuzzer. Even
# with 200 ms, FuzzBothWays tried 61 inputs in 15 s, with ten tries 1,355.
minimize=10x

# A fuzzer that hangs is ended, and says where, when it takes 5 minutes more than it was given. (Nothing in Go does this.)
case $time in
*[0-9]s) stuck=$((${time%s} + 300)) ;;
*[0-9]m) stuck=$((${time%m} * 60 + 300)) ;;
*) stuck=0 ;; # a number of inputs, or hours: no limit
esac

fuzz() { # fuzz PACKAGE-PATH FOLDER NAME BINARY
	local log=$work/$3.log start=$SECONDS result=ok last input
	(cd "$2" && timeout --signal=QUIT --kill-after=30 "$stuck" "$4" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$time" \
		-test.fuzzminimizetime "$minimize" -test.parallel 1 -test.fuzzcachedir "$cache/$1") >"$log" 2>&1 || result=FAILED
	# Go calls it a failure when the time is over before a slow machine is through with the seeds, or with an input that it was still trying.
	if [ "$result" = FAILED ] && grep -q 'context deadline exceeded' "$log" && ! grep -qE 'Failing input written|panic:|budget' "$log"; then
		result='ok, ended by its time'
	fi
	# Go ends a worker whose input takes 10 s by the clock, which one that waits for a processor may. The input says whether it was that: it is run
	# again, three times, within the budgets of its test, which count processor time.
	if [ "$result" = FAILED ] && grep -q 'hung or terminated unexpectedly' "$log" && ! grep -qE '_test\.go:|panic:' "$log"; then
		input=$(sed -n 's/.*Failing input written to \(.*\)/\1/p' "$log" | tail -n 1)
		if [ -n "$input" ] && (cd "$2" && "$4" -test.run "^$3\$/^${input##*/}\$" -test.count 3 -test.v -test.timeout 2m) >>"$log" 2>&1 &&
			[ "$(grep -c -- "--- PASS: $3/${input##*/}" "$log")" = 3 ]; then
			(cd "$2" && rm -f "$input")
			result='ok, ended by an input that had to wait for a processor'
		fi
	fi
	last=$(grep '^fuzz: elapsed' "$log" | tail -n 1 || true)
	if [ "$result" = FAILED ]; then
		echo "$2 $3: $(grep -m1 -E '_test\.go:|panic:|process|exceeded' "$log" | cut -c1-300)" >>"$work/failed"
		last=$(grep -v '^fuzz: elapsed' "$log" | cut -c1-2000 | head -n 100)
	fi
	printf -- '--- %s %s: %s after %s s\n%s\n' "$2" "$3" "$result" "$((SECONDS - start))" "$last"
	[ "$keep" -gt 0 ] && [ -d "$cache/$1/$3" ] || return 0
	mkdir -p "$2/testdata/fuzz/$3"
	# Seeds that are there already have the same names: they are digests of what they hold.
	find "$cache/$1/$3" -type f -size -2k -printf '%s %p\n' | sort -n | head -n "$keep" | cut -d' ' -f2- |
		xargs -r cp -n -t "$2/testdata/fuzz/$3"
}

# Each package is compiled once with what guides a fuzzer, and before the clock of any fuzzer runs.
fuzzers=()
for folder in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do
	path=$(go list "./$folder" 2>/dev/null) || continue # another module
	names=$(cd "$folder" && grep -hoE '^func Fuzz[A-Za-z0-9_]*' -- *_test.go | cut -d' ' -f2 | grep -E "$only") || continue
	binary=$work/${folder//\//-}.test
	go test -c -fuzz . -o "$binary" "./$folder"
	for name in $names; do fuzzers+=("$path $folder $name $binary"); done
done
[ ${#fuzzers[@]} -gt 0 ] || { echo "no fuzzer is named like $only"; exit 1; }
echo "${#fuzzers[@]} fuzzers are compiled ($SECONDS s) and run for $time each, $jobs at a time"

for f in "${fuzzers[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
	# shellcheck disable=SC2086 # four words
	fuzz $f &
done
wait
if [ -s "$work/failed" ]; then
	sed 's/^/failed: /' "$work/failed"
	echo "The inputs are below testdata/fuzz of each package: mend the code and commit them."
	git status --short --untracked-files=all -- '*/testdata/fuzz/*'
	exit 1
fi
echo "${#fuzzers[@]} fuzzers found nothing in $SECONDS s"
