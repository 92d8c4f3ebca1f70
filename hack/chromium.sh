#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Sees to it that there is a Chromium: the one of Debian, where this may install it. Ends with 1, and says why, where there is none.
set -euo pipefail
for one in chromium chromium-browser google-chrome; do
	if command -v "$one" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	log=$(mktemp)
	echo "--- installing chromium (apt-get, about 100 MB)"
	if (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core) >"$log" 2>&1; then
		rm -f "$log"
		exit 0
	fi
	tail -n 5 "$log"
fi
echo "NOT CHECKED: the page of kubectl memfit report in a browser. There is no chromium here, and this cannot install it (as root, apt-get install chromium)"
exit 1
