#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Runs govulncheck on the module in FOLDER, by default memfit. Its database is on the internet, or where GOVULNDB says: a copy in a folder
# (GOVULNDB=file:///srv/vulndb) is a pin, since it says the same tomorrow. Where the one on the internet cannot be reached the check has not
# been done, and this says so in one line and ends well, because nothing was found either. Everything else that goes wrong is an error, a copy
# that cannot be read among them: who names one wants the check.
#   hack/govulncheck.sh [FOLDER]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${1:-$root}"
database=()
if [ -n "${GOVULNDB:-}" ]; then
	database=(-db "$GOVULNDB")
	case $GOVULNDB in
	file://*) # govulncheck itself finds nothing in a folder that is no database, and calls that well
		folder=${GOVULNDB#file://}
		for file in index/db.json index/modules.json; do
			[ -s "$folder/$file" ] || { echo "govulncheck: GOVULNDB=$GOVULNDB is no vulnerability database: $folder/$file is missing"; exit 1; }
		done
		echo "govulncheck: the database in $folder, $(cat "$folder/index/db.json")"
		;;
	esac
fi

# Once, on a busy machine, it named a vulnerability and ended with 0.
if out=$(go tool -modfile="$root/hack/tools/go.mod" govulncheck "${database[@]}" ./... 2>&1) && ! grep -q '^Vulnerability #' <<<"$out"; then
	echo "$out"
	exit 0
else
	code=$?
fi
# Exit 3 means that vulnerabilities were found; the words below are those of a failed download.
if [ -z "${GOVULNDB:-}" ] && [ "$code" -ne 3 ] &&
	grep -qiE 'fetching vulnerabilities|no such host|dial tcp|i/o timeout|connection refused|proxyconnect|403 Forbidden|HTTP GET .*(4|5)[0-9][0-9]' <<<"$out"; then
	echo "govulncheck: NOT CHECKED, because Go's vulnerability database cannot be reached from here; GOVULNDB=file://FOLDER with a copy of it makes this check run"
	exit 0
fi
echo "$out"
exit "$code"
