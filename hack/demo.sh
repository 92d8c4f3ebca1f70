#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Runs `make demo`: first what memfit does without a cluster, then a node, then the story on it. The programs of the node
# are compiled in the background from the moment when the first part is compiled, which they share most packages with;
# what can be downloaded is downloaded beside both. Everything goes to the terminal and to dist/demo.log. At the end
# dist/demo.times says what it took; `make demo-times` writes that into README.md.
set -uo pipefail
{ # read to its end before it runs: a pull or a rebase may change this file meanwhile

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export CGO_ENABLED=0 GOGC=400 # as the programs of the node are compiled, so that nothing is compiled twice
mkdir -p dist
node_log=dist/demo-node.log
: >"$node_log"
begin=$SECONDS
node=

# end stops the background, also after Ctrl-C. What it has started in a cluster stays: make demo-down removes that.
end() { [ -z "$node" ] || kill -- "-$node" 2>/dev/null; }
trap end EXIT
trap 'exit 130' INT TERM

# beat WHAT PID says every 20 s that something still runs.
beat() {
	local since=$SECONDS
	while kill -0 "$2" 2>/dev/null; do
		sleep 1
		[ $(((SECONDS - since) % 20)) != 19 ] || echo "    $1 ... $((SECONDS - since)) s"
	done
	wait "$2"
}

echo "--- 1/3 what memfit does, without a cluster: its program is compiled, about 100 s of processor time the first time"
go list -deps -f= ./cmd/manager ./cmd/agent ./hack/demo >/dev/null 2>&1 & # downloads
go build -trimpath -gcflags=all=-dwarf=false -o dist/preview ./cmd/kubectl-memfit/internal/preview &
beat "compiling" $! || exit
setsid hack/steps.sh cluster image load-image deploy-lab agent-lab >"$node_log" 2>&1 &
node=$!
dist/preview || exit
preview=$((SECONDS - begin))
echo "    after $preview s"

echo
echo "--- 2/3 a node: compiling began meanwhile. What it says is in $node_log, too"
tail -n +1 -f --pid="$node" "$node_log" &
tail=$!
wait "$node"
status=$?
node=
wait "$tail" 2>/dev/null
[ "$status" = 0 ] || exit "$status"
up=$((SECONDS - begin))

echo
echo "--- 3/3 the story"
go build -trimpath -gcflags=all=-dwarf=false -o dist/demo ./hack/demo || exit
story=$SECONDS
make --no-print-directory demo-story || exit

from="from the caches"
grep -q ' built in ' "$node_log" && from="compiled and downloaded what was missing"
times >dist/demo.times # not in a pipe, where it would count nothing; its last line is that of what was started and waited for
processor=$(tail -n 1 dist/demo.times | awk '{ for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } print int(s + 0.5) }')
printf 'first results after %s s, a node with memfit after %s s, the demo itself in %s s; %s s of processor time (%s; %s, %s processors, load %s)\n' \
	"$preview" "$up" "$((SECONDS - story))" "$processor" "$from" "$(date +%F)" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" |
	tee dist/demo.times
exit 0
}
