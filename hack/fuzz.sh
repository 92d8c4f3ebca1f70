#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzzer of this module for FUZZTIME each. An input that fails is kept by Go as a seed below testdata/fuzz of its package: commit
# it, and every `go test` tries it from then on. FUZZ_KEEP=10 keeps also the ten shortest of the inputs that reached new code.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-10s} keep=${FUZZ_KEEP:-0} only=${FUZZ:-.} failed=()
cache=$(go env GOCACHE)/fuzz

fuzz() { # fuzz PACKAGE-PATH FOLDER NAME
	echo "--- $2 $3 ($time)"
	go test -run '^$' -fuzz "^$3\$" -fuzztime "$time" -parallel "${TEST_PARALLEL:-2}" "./$2" || failed+=("$2 $3")
	[ "$keep" -gt 0 ] && [ -d "$cache/$1/$3" ] || return 0
	mkdir -p "$2/testdata/fuzz/$3"
	# Seeds that are there already have the same names: they are digests of what they hold.
	find "$cache/$1/$3" -type f -size -2k -printf '%s %p\n' | sort -n | head -n "$keep" | cut -d' ' -f2- |
		xargs -r cp -n -t "$2/testdata/fuzz/$3"
}

for folder in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do
	path=$(go list "./$folder" 2>/dev/null) || continue # another module
	for name in $(go test -list '^Fuzz' "./$folder" | grep '^Fuzz' | grep -E "$only"); do
		fuzz "$path" "$folder" "$name"
	done
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}"
	echo "The inputs are below testdata/fuzz of each package: mend the code and commit them."
	exit 1
fi
