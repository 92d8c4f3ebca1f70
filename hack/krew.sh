#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the manifest that `kubectl krew install --manifest` reads, from the archives of the plugin in a folder:
#   hack/krew.sh VERSION FOLDER URL FILE    URL is the folder that the archives will be downloaded from.
set -euo pipefail
version=$1 folder=$2 url=${3%/} file=$4
[[ $version == v* ]] || { echo "version $version: krew requires a v and a semantic version, like v0.1.0"; exit 1; }
compgen -G "$folder/kubectl-memfit_*_*.tar.gz" >/dev/null || { echo "no archive kubectl-memfit_OS_ARCH.tar.gz in $folder"; exit 1; }
mkdir -p "$(dirname "$file")"
{
	cat <<-END
		apiVersion: krew.googlecontainertools.github.com/v1alpha2
		kind: Plugin
		metadata:
		  name: memfit
		spec:
		  version: $version
		  homepage: https://github.com/memfit/memfit
		  shortDescription: Show where the memory of pods is and what fits
		  description: |
		    Explains memfit's memory recommendations and OOM kills, draws what fills the memory of a pod, lists what
		    runs in a cluster and what memory it takes, and exports sizes as patches for Git. It only reads.
		  caveats: |
		    \`kubectl memfit scan\` needs nothing installed; \`why\` and \`map\` need memfit's agent.
		  platforms:
	END
	for archive in "$folder"/kubectl-memfit_*_*.tar.gz; do
		IFS=_ read -r _ os arch <<<"$(basename "$archive" .tar.gz)"
		cat <<-END
			  - selector: {matchLabels: {os: $os, arch: $arch}}
			    uri: $url/$(basename "$archive")
			    sha256: $(sha256sum <"$archive" | cut -d' ' -f1)
			    bin: kubectl-memfit$([ "$os" != windows ] || echo .exe)
		END
	done
} >"$file"
