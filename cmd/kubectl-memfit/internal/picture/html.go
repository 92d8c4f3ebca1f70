// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"io"
	"strings"
)

const htmlHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%s</title>
<style>
body { font-family: system-ui, sans-serif; color: #1a1a1a; background: #ffffff; margin: 1em; }
svg { max-width: 100%%; height: auto; }
table { border-collapse: collapse; margin: 1em 0; }
caption { text-align: left; font-weight: bold; }
th, td { text-align: right; padding: 0.15em 0.8em; border-bottom: 1px solid #d0d0d0; }
th:first-child, td:first-child { text-align: left; }
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) { body { color: #ececec; background: #16181b; } th, td { border-color: #3a3f45; } }
</style>
</head>
<body>
`

// WriteHTML is a page with the picture and its numbers as tables. It loads nothing and runs nothing.
func (p *Pod) WriteHTML(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, htmlHead, escape(p.heading()))
	if err := p.WriteSVG(&b); err != nil {
		return err
	}
	for i := range p.Containers {
		p.Containers[i].table(&b)
	}
	b.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Container) table(b *strings.Builder) {
	if len(c.Parts) == 0 {
		return
	}
	fmt.Fprintf(b, "<table>\n<caption>%s</caption>\n", escape(c.heading()))
	b.WriteString("<tr><th>part</th><th>resident</th><th>of that free</th><th>share</th></tr>\n")
	for i := range c.Parts {
		p := &c.Parts[i]
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", escape(p.Name), p.Size, p.Free,
			c.share(p.Size))
	}
	b.WriteString("</table>\n")
}
