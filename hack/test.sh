#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every test that needs no cluster: the operator's (against a real API server where a test asks for one) and the lab's, the chart's, and memfit against VPA.
# Called by `make test`, which passes TEST_PARALLEL and TEST_FLAGS, and by `make test-race`, which passes TEST_RACE=1 as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# One more than the processors that the README counts on, because some tests wait for an API server.
parallel=${TEST_PARALLEL:-3}
read -ra flags <<<"-vet=off ${TEST_FLAGS:-}" # make verify vets every module
race=()
if [ -n "${TEST_RACE:-}" ]; then
	# Under the detector, two suites with API servers on two cores come close to the usual ten minutes.
	race=(-race -timeout 40m)
	parallel=${TEST_PARALLEL:-2}
	command -v "$(go env CC)" >/dev/null || { echo "the race detector needs a C compiler: apt-get install gcc libc6-dev"; exit 1; }
	export CGO_ENABLED=1
else
	# As the API server and etcd are compiled, so that what they share with memfit is compiled once.
	export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath -gcflags=all=-dwarf=false"
fi
started=$SECONDS
# What it does and how long it takes: the times are those of the last run here, which wrote them.
times=dist/test${TEST_RACE:+-race}.times
mkdir -p dist
echo "--- test: an API server and etcd (compiled when missing), then the operator, memfit against its peers, the chart, alerts and dashboard, the lab"
if [ -s "$times" ]; then
	echo "    the last run here: $(paste -sd';' "$times" | sed 's/;/; /g')"
else
	echo "    no run here so far: most of the first one is compiling, each part says what it took"
fi
took=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Modules are downloaded beside compiling. What fails here is told where they are needed.
for module in . test/chart test/monitoring hack/lab; do
	go -C "$module" list -test -deps -f= ./... >/dev/null 2>&1 || true
done &

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	echo "--- test: using the API server and etcd in $KUBEBUILDER_ASSETS"
else
	echo "--- test: building etcd, kube-apiserver and kubectl from Go modules, unless an earlier run did (some minutes the first time)"
	KUBEBUILDER_ASSETS=$(CGO_ENABLED=0 MEMFIT_LAB_SOURCE=$PWD/hack/lab go -C hack/lab run -trimpath -gcflags=all=-dwarf=false . binaries --only etcd,kube-apiserver,kubectl --print-dir)
	echo "    ready in $KUBEBUILDER_ASSETS ($((SECONDS - started)) s)"
	took+=("API server and etcd $((SECONDS - started)) s")
fi
export KUBEBUILDER_ASSETS

status=0
run() { # run NAME GO-ARGUMENTS...
	local name=$1 start=$SECONDS
	shift
	echo "--- test: $name"
	go "$@" 2>&1 | tee -a "$log" || status=1
	echo "    $name took $((SECONDS - start)) s"
	took+=("$name $((SECONDS - start)) s")
}

# test/e2e needs a node: make test-e2e.
mapfile -t packages < <(go list ./... | grep -v '/test/e2e')
run "the operator, ${#packages[@]} packages" test -p "$parallel" "${race[@]}" "${flags[@]}" "${packages[@]}"
if [ -n "${TEST_RACE:-}" ]; then
	# The detector takes time and memory of its own, so bounds are wide under it (test/budget): who has one is held to it without, too.
	mapfile -t bounded < <(git grep -lE 'budget\.Check|AllocsPerRun|ReadMemStats' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')
	run "what has bounds, without the race detector" test -p "$parallel" -skip '^(TestControllers|TestWebhooks)$' "${flags[@]}" "${bounded[@]}"
fi
# Never with -race: it is one long computation. Without TRACES: the simulator, and memfit against VPA on generated sets and on test/recordings.
run "memfit against its peers" -C test/peers test -mod=mod -p "$parallel" "${flags[@]}" ./...
run "the chart" -C test/chart test -p "$parallel" "${flags[@]}" ./...
run "alerts and dashboard" -C test/monitoring test -p "$parallel" "${flags[@]}" ./...
run "the lab" -C hack/lab test -p "$parallel" "${race[@]}" "${flags[@]}" ./...

passed=$(grep -c '^ok  ' "$log" || true)
broken=$(grep -c -E '^FAIL[[:space:]]+[^[:space:]]' "$log" || true)
echo "--- test: done in $((SECONDS - started)) s"
printf '%s\n' "${took[@]}" "in all $((SECONDS - started)) s, $(date +%F), $(nproc) processors" >"$times"
echo "packages: $passed passed, $broken failed"
exit "$status"
