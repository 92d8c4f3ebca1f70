#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Runs make targets one after the other, as `make demo` and `make test-e2e` do before their own work: says what each is
# for, tells every 40 s that it is still at it, and what it took at the end. The first that fails ends it.
#   hack/steps.sh TARGET...
set -uo pipefail

what() {
	case $1 in
	cluster) echo "a cluster: the programs of a node are compiled the first time" ;;
	image) echo "memfit's image: compiled the first time" ;;
	load-image) echo "memfit's image, into the cluster" ;;
	load-vpa) echo "the Vertical Pod Autoscaler's images: compiled the first time, 5 min of processor time" ;;
	load-argo) echo "Argo Workflows' images: compiled the first time, 10 min of processor time" ;;
	agent-lab) echo "the agent of the node, which recognizes a stall within a minute" ;;
	deploy-lab) echo "memfit itself: its certificate, its pods, its webhook" ;;
	*) echo "make $1" ;;
	esac
}

{ # read to its end before it runs: a pull or a rebase may change this file meanwhile

[ $# -gt 0 ] || exit 0 # E2E_SETUP=
took=()
for target in "$@"; do
	begin=$SECONDS
	echo "--- make $target ($(what "$target"))"
	( # a child that ends with its parent, and keeps no pipe of ours open while it sleeps
		[ "$target" != cluster ] || exit 0 # it tells by itself, every 30 s
		while sleep 40 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
			echo "    still at make $target after $((SECONDS - begin)) s. To look: make lab-status, make $target elsewhere"
		done
	) &
	beat=$!
	make --no-print-directory "$target"
	status=$?
	kill "$beat" 2>/dev/null
	wait "$beat" 2>/dev/null
	[ "$status" = 0 ] || exit "$status"
	took+=("$target $((SECONDS - begin)) s")
done
printf -- '--- before the work itself:'
printf ' %s;' "${took[@]}"
printf ' in all %s s\n' "$SECONDS"
exit 0
}
