#!/usr/bin/env bash
# Copyright 2026 The memfit authors.
# SPDX-License-Identifier: Apache-2.0

# Draws docs/images/admission.svg: requests a second of each admission server, from the lines of `make bench-admission` that
# docs/evidence/admission.md quotes. `make generate` runs it, so `make verify` fails when picture and numbers differ. Without
# such lines there is nothing to draw.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=docs/evidence/admission.md
grep -q '^server=' "$page" || exit 0
drawn=$(mktemp)
trap 'rm -f "$drawn"' EXIT

awk '
function value(name,   i) {
	for (i = 1; i <= NF; i++) if (index($i, name "=") == 1) return substr($i, length(name) + 2)
}
function bar(y, server, of,   rps, width) {
	rps = found[of, server]
	if (rps == "") { printf "no line for server=%s case=%s protocol=http/1.1\n", server, of > "/dev/stderr"; failed = 1 }
	width = 430 * rps / most
	printf "  <rect x=\"230\" y=\"%d\" width=\"%.0f\" height=\"16\" fill=\"%s\" stroke=\"#777\"/>", y, width, color[server]
	printf "<text x=\"%.0f\" y=\"%d\" font-size=\"12\">%d</text>", 236 + width, y + 13, rps
	printf "<text x=\"224\" y=\"%d\" font-size=\"12\" text-anchor=\"end\">%s</text>\n", y + 13, title[server]
}
/^server=/ && value("protocol") == "http/1.1" {
	found[value("case"), value("server")] = value("rps")
	if (value("rps") + 0 > most) most = value("rps") + 0
}
END {
	cases = split("governed governed-first ungoverned", order, " ")
	label["governed"] = "governed"; label["governed-first"] = "all first pods"; label["ungoverned"] = "not governed"
	servers = split("memfit vpa noop", who, " ")
	title["memfit"] = "memfit"; title["vpa"] = "VPA"; title["noop"] = "does nothing"
	color["memfit"] = "#2a6db0"; color["vpa"] = "#f2c14e"; color["noop"] = "#f3f3f3"
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 262\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\""
	print "     role=\"img\" aria-label=\"Admission requests a second: memfit, VPA and a webhook that does nothing\" fill=\"#777\">"
	print "  <text x=\"10\" y=\"18\">Admission requests a second on one core, by kind of pod (HTTP/1.1)</text>"
	for (i = 1; i <= cases; i++) {
		y = 34 + 76 * (i - 1)
		printf "  <text x=\"10\" y=\"%d\" font-weight=\"bold\">%s</text>\n", y + 33, label[order[i]]
		for (j = 1; j <= servers; j++) bar(y + 20 * (j - 1), who[j], order[i])
	}
	print "</svg>"
	exit failed
}' "$page" >"$drawn"
cmp -s "$drawn" docs/images/admission.svg || cat "$drawn" >docs/images/admission.svg
