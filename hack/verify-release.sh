#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Builds a whole release twice (hack/release.sh with DRY=1): the second time from a copy of the tree, into another folder, with an empty build cache, another
# umask, time zone and language. Fails when a byte differs, of the images of each processor, too. ARCHES and PLUGINS make it smaller, as hack/release.sh says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export VERSION=${VERSION:-v0.1.0} DRY=1 LAB=$work/lab
# Packs what is compared. It is no part of that, so it is compiled once and here.
go -C hack/lab build -o "$LAB" .

files() { (cd "$1" && find . -type f | sort | xargs -d '\n' sha256sum); }

start=$SECONDS
OUT=$work/one PROGRAMS=$work/programs hack/release.sh >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
echo "built once in $((SECONDS - start)) s"

start=$SECONDS
copy=$work/and/deeper/two
mkdir -p "$(dirname "$copy")"
git clone -q . "$copy" # what is not committed is no part of a release
(
	umask 077
	export TZ=Asia/Tokyo LC_ALL=C GOCACHE=$work/cache GOMODCACHE
	GOMODCACHE=$(go env GOMODCACHE)
	export HOME=$work/home OUT=$work/out PROGRAMS=$work/others
	"$copy/hack/release.sh" >"$work/log" 2>&1
) || { cat "$work/log" >&2; exit 1; }
echo "built again, with nothing cached, in $((SECONDS - start)) s"

if ! diff <(files "$work/one") <(files "$work/out"); then
	echo "NOT REPRODUCIBLE: the lines above differ between two builds of the same source"
	exit 1
fi
cat "$work/one/checksums.txt"
echo "reproducible: $(files "$work/one" | wc -l) files of $VERSION with $(go env GOVERSION)"
