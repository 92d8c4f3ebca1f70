// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html.tmpl
var source string

var pageTemplate = template.Must(template.New("page").Parse(source))

// page is what the template shows.
type page struct {
	*Pod

	Picture template.HTML
}

// WriteHTML is a page with the picture and its numbers as tables. It loads nothing and runs nothing.
func (p *Pod) WriteHTML(w io.Writer) error {
	var svg strings.Builder
	if err := p.WriteSVG(&svg); err != nil {
		return err
	}
	picture := template.HTML(svg.String()) //nolint:gosec // WriteSVG escapes all texts
	if err := pageTemplate.Execute(w, page{p, picture}); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
