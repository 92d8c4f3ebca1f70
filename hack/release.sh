#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Builds all that a release consists of into OUT (dist/release), without Docker. With DRY=1 that is all. Otherwise it then sends the images and
# the chart to REGISTRY, a host and a path that has no default here, and signs what it sent with cosign. `make release` calls it; so does
# .github/workflows/release.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${VERSION:?"VERSION says which version this is, for example v0.1.0"}
out=${OUT:-dist/release}
dry=${DRY:-}
programs=${PROGRAMS:-dist/programs}
lab=${LAB:-go -C "$PWD/hack/lab" run .}
# Programs of the cluster, and the plugin for those who look at one. Fewer are for trying this script out.
read -ra arches <<<"${ARCHES:-amd64 arm64}"
read -ra plugins <<<"${PLUGINS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}"
from=https://github.com/memfit/memfit/releases/download/$version

case $version in
v[0-9]*.[0-9]*.[0-9]*) ;;
*)
	[ -n "$dry" ] || { echo "VERSION=$version: a release is called v and a semantic version, like v0.1.0. To try it out: DRY=1"; exit 1; }
	version=v0.0.0-dev.x${version//[^0-9A-Za-z-]/-}
	echo "--- release: this is no version of a release, so everything is called $version"
	;;
esac
number=${version#v}
[ -n "$dry" ] || : "${REGISTRY:?"REGISTRY says where images and chart go: a host and a path, for example registry.example/memfit"}"
repository=${REGISTRY:-registry.example/memfit}

step() { echo "--- release: $*"; }

# build OS ARCH COMMAND FILE: the same flags as everywhere (hack/make/build.mk), so that the bytes are the same.
build() {
	CGO_ENABLED=0 GOOS=$1 GOARCH=$2 go build -trimpath -gcflags=all=-dwarf=false -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$version" -o "$4" "./cmd/$3"
}

rm -rf "$out" "$programs"
mkdir -p "$out" "$programs"
out=$(cd "$out" && pwd)
programs=$(cd "$programs" && pwd)

declare -A digest
for program in manager agent; do
	step "the image of the $program, for ${arches[*]}"
	binaries=()
	for arch in "${arches[@]}"; do
		build linux "$arch" "$program" "$programs/$program-$arch"
		binaries+=(--binary "$arch=$programs/$program-$arch")
		$lab sbom --binary "$programs/$program-$arch" --version "$version" -o "$out/${program}_linux_$arch.cdx.json"
	done
	digest[$program]=$($lab image-index "${binaries[@]}" --entrypoint "/$program" --tag "$version" -o "$out/image-$program" \
		--label org.opencontainers.image.version="$version" --label org.opencontainers.image.title="memfit-$program" \
		--label org.opencontainers.image.source=https://github.com/memfit/memfit --label org.opencontainers.image.licenses=Apache-2.0)
	echo "    ${digest[$program]}"
done

step "the plugin, for ${plugins[*]}"
for platform in "${plugins[@]}"; do
	os=${platform%/*} arch=${platform#*/} suffix=
	[ "$os" != windows ] || suffix=.exe
	folder=$programs/$os-$arch
	mkdir -p "$folder"
	build "$os" "$arch" kubectl-memfit "$folder/kubectl-memfit$suffix"
	install -m 0644 LICENSE "$folder/LICENSE"
	chmod 0755 "$folder/kubectl-memfit$suffix"
	$lab sbom --binary "$folder/kubectl-memfit$suffix" --version "$version" -o "$out/kubectl-memfit_${os}_$arch.cdx.json"
	tar --create --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder" LICENSE "kubectl-memfit$suffix" |
		gzip --no-name >"$out/kubectl-memfit_${os}_$arch.tar.gz"
done
hack/krew.sh "$version" "$out" "$from" "$out/krew/memfit.yaml"

step "the chart"
go run ./hack/chart package -version "$version" -o "$programs/chart" >/dev/null
cp "$programs/chart/memfit-$number.tgz" "$out/"

step "manifests for kubectl"
for tree in default overlays/observe-only overlays/self-managed-certs overlays/agent-watch overlays/agent-see; do
	name=install-$(basename "$tree").yaml
	make --no-print-directory build-installer TREE="config/$tree" VERSION="$version" \
		IMG="$repository/manager@${digest[manager]}" AGENT_IMG="$repository/agent@${digest[agent]}" >/dev/null
	mv dist/install.yaml "$out/${name/-default/}"
done

step "checksums"
(cd "$out" && find . -type f -not -path './image-*' -not -name checksums.txt -printf '%P\n' | sort | xargs -d '\n' sha256sum >checksums.txt)

if [ -n "$dry" ]; then
	step "DRY=1, so nothing is sent and nothing is signed. In $out:"
	(cd "$out" && find . -maxdepth 1 -mindepth 1 -printf '    %f\n' | sort)
	exit 0
fi

# cosign asks whoever runs this to say who they are, or takes the identity of the workflow. Pinned like everything else.
cosign() { go run github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3 "$@"; }
for program in manager agent; do
	step "sending $repository/$program:$version"
	$lab push "$out/image-$program" "$repository/$program:$version"
	cosign sign --yes "$repository/$program@${digest[$program]}"
done
step "sending $repository/charts/memfit:$number"
# Helm of the chart's tests; it takes the credentials that `docker login` or `helm registry login` has left.
pushed=$(go -C test/chart tool helm push "$out/memfit-$number.tgz" "oci://$repository/charts")
cosign sign --yes "$repository/charts/memfit@$(sed -n 's/^Digest: //p' <<<"$pushed")"
step "signing checksums.txt, which names every file"
cosign sign-blob --yes --bundle "$out/checksums.txt.sigstore.json" "$out/checksums.txt"
