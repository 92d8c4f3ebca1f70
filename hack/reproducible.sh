#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the images, the kubectl plugin, their SBOMs and the Helm chart twice from copies of the tree: in folders of different depth, with another umask, time
# zone and language, the second time without git and with an empty build cache. Fails when a byte of them differs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
version=$(git describe --tags --always --dirty)
outputs=(dist/manager.tar dist/manager.cdx.json dist/agent.tar dist/agent.cdx.json bin/kubectl-memfit dist/kubectl-memfit.cdx.json dist/chart.tgz)

# Packs what is compared. It is no part of that, so it is compiled once and here.
go -C hack/lab build -o "$work/lab" .

copy() { # copy FOLDER: the tree as it would be committed
	mkdir -p "$1"
	git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' f; do
		if [ -f "$f" ]; then printf '%s\0' "$f"; fi
	done | tar --create --null --files-from=- | tar --extract --directory="$1"
}

made() { # made FOLDER: build there and print what came out
	make -C "$1" LAB="$work/lab" VERSION="$version" sbom chart >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
	(cd "$1" && mv dist/memfit-*.tgz dist/chart.tgz && sha256sum "${outputs[@]}")
}

start=$SECONDS
copy "$work/one"
copy "$work/and/deeper/two"
git -C "$work/one" init -q && git -C "$work/one" add -A && git -C "$work/one" -c user.name=x -c user.email=x@example.com commit -qm x
first=$(made "$work/one")
echo "built once in $((SECONDS - start)) s"

start=$SECONDS
second=$(umask 077 && export TZ=Asia/Tokyo LC_ALL=C HOME="$work/home" GOCACHE="$work/cache" GOMODCACHE="$(go env GOMODCACHE)" && made "$work/and/deeper/two")
echo "built again, with nothing cached, in $((SECONDS - start)) s"

if [ "$first" != "$second" ]; then
	diff <(echo "$first") <(echo "$second") || true
	echo "NOT REPRODUCIBLE: the lines above differ between two builds of the same source"
	exit 1
fi
echo "$first"
for image in manager agent; do
	echo "reproducible: $image $("$work/lab" digest "$work/one/dist/$image.tar") of $version with $(go env GOVERSION)"
done
