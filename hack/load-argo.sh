#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the controller and the executor of Argo Workflows and loads them into the lab's node, as `make load-argo` does.
#   ARGO_VERSION=v4.0.5 LAB='CGO_ENABLED=0 go -C hack/lab run .' hack/load-argo.sh DIR
# Its module is unpacked in DIR/src, where the test reads the manifests, too. A module has no symbolic links: the one
# that the executor needs on Linux is made again.
set -euo pipefail

dir=$(mkdir -p "$1" && cd "$1" && pwd)
module=$(cd "$dir" && go mod download -json "github.com/argoproj/argo-workflows/v4@$ARGO_VERSION" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
if [ "$(cat "$dir/src.of" 2>/dev/null)" != "$module" ]; then
	rm -rf "$dir/src"
	cp -r "$module" "$dir/src"
	chmod -R u+w "$dir/src"
	ln -s signal_darwin.go "$dir/src/workflow/executor/osspecific/signal_linux.go"
	echo "$module" >"$dir/src.of"
fi
for part in workflow-controller argoexec; do
	CGO_ENABLED=0 go -C "$dir/src" build -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/$part" "./cmd/$part"
	env $LAB image --binary "$dir/$part" --entrypoint "/bin/$part" --name "memfit.test/$part:dev" -o "$dir/$part.tar"
	env $LAB load "$dir/$part.tar"
done
