#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the tree is as its own rules say: formatted, generated files up to date, vetted, linted, go.mod tidy.
# Generators run in a copy, so a check never changes what it checks. Every step runs even after one failed,
# so that one run names all there is to mend. To add a check, write a function and a `step` line at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
tools=$root/hack/tools/go.mod
failed=()

step() { # step NAME COMMAND...: run it, say how long it took, remember a failure
	local name=$1 start=$SECONDS
	shift
	echo "--- verify: $name"
	if ("$@"); then
		echo "    ok ($((SECONDS - start)) s)"
	else
		echo "    FAILED ($((SECONDS - start)) s)"
		failed+=("$name")
	fi
}

# What git knows plus what it would add: the tree as it would be committed, without bin/ and dist/.
sources() { git ls-files --cached --others --exclude-standard -z -- "$@" | while IFS= read -r -d '' f; do
	if [ -f "$f" ]; then printf '%s\0' "$f"; fi
done; }

formatted() {
	local out
	out=$(sources '*.go' | xargs -0 -r gofmt -l)
	[ -z "$out" ] || { echo "$out"; echo "    mend with: make fmt"; return 1; }
}

shell_scripts_parse() { sources '*.sh' .ci/run | xargs -0 -r -n1 bash -n; }

generated() {
	local copy
	copy=$(mktemp -d)
	# shellcheck disable=SC2064 # the path is known now
	trap "rm -rf '$copy'" EXIT
	sources | tar --create --null --files-from=- | tar --extract --directory="$copy"
	cp -r "$copy" "$copy.before"
	# shellcheck disable=SC2064
	trap "rm -rf '$copy' '$copy.before'" EXIT
	# A file nobody generates any more would survive a plain diff, so the generated ones are removed first.
	rm -f "$copy"/api/*/zz_generated.*.go "$copy"/config/crd/bases/*.yaml
	make -C "$copy" generate manifests >"$copy.log" 2>&1 || { cat "$copy.log"; rm -f "$copy.log"; return 1; }
	rm -f "$copy.log"
	diff -ru "$copy.before" "$copy" || { echo "    mend with: make generate manifests"; return 1; }
}

# The modules with code of ours. hack/tools and hack/lab/modules only pin other people's programs; what stands in testdata is
# input of tests, some of it for compilers older than our linters.
modules() {
	local dir
	sources 'go.mod' '*/go.mod' | xargs -0 -n1 dirname | grep -v -e '^hack/tools' -e '^hack/lab/modules/' -e '/testdata/' | sort |
		while read -r dir; do
			if [ -n "$(git ls-files --cached --others --exclude-standard -- "$dir/*.go")" ]; then echo "$dir"; fi
		done
}

vetted() { go -C "$1" vet -tags e2e ./...; }

linted() { (cd "$1" && go tool -modfile="$tools" golangci-lint run --allow-parallel-runners --config "$root/.golangci.yml" --build-tags e2e ./...); }

tidy() {
	local out
	out=$(go mod tidy -diff 2>&1) || { grep -v '^go: downloading' <<<"$out" | head -n 40; echo "    mend with: go mod tidy"; return 1; }
}

started=$SECONDS
step "gofmt" formatted
step "shell syntax" shell_scripts_parse
step "generated files" generated
for m in $(modules); do
	step "go vet in $m" vetted "$m"
	step "golangci-lint in $m" linted "$m"
done
step "go mod tidy" tidy

if [ ${#failed[@]} -gt 0 ]; then
	printf 'verify: FAILED after %s s:' "$((SECONDS - started))"
	printf ' %s;' "${failed[@]}"
	echo
	exit 1
fi
echo "verify: all checks passed in $((SECONDS - started)) s"
