// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

const (
	// textWidth is the maximum length of a line, so that mail and chat programs do not wrap it.
	textWidth = 110
	// labelWidth is the number of columns before the text of a labeled line.
	labelWidth = 13
)

// page is a text with headings and labeled lines.
type page struct {
	strings.Builder
	colors listing.Colors
}

// Write prints an explanation for users.
func (e *Explanation) Write(w io.Writer, colors listing.Colors) error {
	p := &page{colors: colors}
	p.heading(Title(e.Namespace, e.Status))
	p.item("Profile", e.Status.Profile.Kind+" "+e.Status.Profile.Name)
	p.item("Summary", e.Status.Summary)
	if c := e.Status.Coverage; c != nil {
		p.item("Pods", covered(c))
	}
	p.list("Clashes", e.Clashes)
	for i := range e.Status.Containers {
		var policy *Policy
		if i < len(e.Policies) {
			policy = &e.Policies[i]
		}
		p.container(&e.Status.Containers[i], policy)
	}
	p.kills(e.Status)
	p.stalls(e.Status)
	p.section("Conditions", sentences(e.Status.Conditions))
	p.section("Advisories", e.Status.Advisories)
	p.section("What to do next", e.Next)
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *page) container(c *v1alpha1.ContainerRecommendation, policy *Policy) {
	p.heading("Container " + c.Container)
	p.item("Decision", decision(c))
	p.item("Runtime", c.Runtime)
	p.item("Evidence", evidence(&c.Evidence))
	p.list("Why", c.Reasons)
	if policy != nil {
		p.item("Bounds", bounds(&policy.Sizing))
		p.list("Values", origins(policy.Values))
	}
	p.list("Settings", c.Settings)
	if c.Shape != nil {
		p.item("Memory", shape(c.Shape))
	}
	p.list("Filled by", c.Breakdown)
	p.list("Would help", c.Suggestions)
	p.list("Advice", c.Advice)
}

func decision(c *v1alpha1.ContainerRecommendation) string {
	now := cmp.Or(c.Recommended, &v1alpha1.Size{})
	text := fmt.Sprintf(
		"%s: limit %s, request %s", c.Decision, step(c.Current.Limit, now.Limit), step(c.Current.Request, now.Request),
	)
	if c.Confidence != "" {
		text += " (confidence " + c.Confidence + ")"
	}
	return text
}

func (p *page) kills(s *v1alpha1.MemoryRecommendationStatus) {
	if s.OOMKills == 0 && len(s.RecentOOMKills) == 0 {
		return
	}
	head := fmt.Sprintf("OOM kills: %d so far", s.OOMKills)
	if listed := int64(len(s.RecentOOMKills)); 0 < listed && listed < s.OOMKills {
		head += fmt.Sprintf(", the last %d in detail", listed)
	}
	p.heading(head)
	for i := range s.RecentOOMKills {
		k := &s.RecentOOMKills[i]
		p.hanging("  ", "    ", killed(k))
		p.hanging("    ", "    ", k.Summary)
	}
}

func (p *page) stalls(s *v1alpha1.MemoryRecommendationStatus) {
	if s.Stalls == 0 {
		return
	}
	p.heading(fmt.Sprintf("Stalls: %d so far", s.Stalls))
	for i := range s.RecentStalls {
		p.hanging("  ", "    ", "pod "+s.RecentStalls[i].Pod+": "+s.RecentStalls[i].Summary)
	}
}

func sentences(conditions []metav1.Condition) []string {
	texts := make([]string, 0, len(conditions))
	for i := range conditions {
		c := &conditions[i]
		texts = append(texts, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}

// section prints a heading and the texts below it, or nothing without texts.
func (p *page) section(title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	p.heading(title)
	for _, text := range texts {
		p.hanging("  ", "    ", text)
	}
}

func (p *page) heading(text string) {
	if p.Len() > 0 {
		p.WriteString("\n")
	}
	p.WriteString(p.colors.Paint(listing.Bold, listing.Line(text)) + "\n")
}

// item prints a text after a label, or nothing if the text is empty.
func (p *page) item(label, text string) { p.list(label, []string{text}) }

// list prints texts after a label, with dashes if there are several. It omits empty texts.
func (p *page) list(label string, texts []string) {
	first := fmt.Sprintf("  %-*s", labelWidth-2, label)
	indent := strings.Repeat(" ", labelWidth)
	for _, text := range texts {
		if listing.Line(text) == "" {
			continue
		}
		rest := indent
		if len(texts) > 1 {
			text, rest = "- "+text, indent+"  "
		}
		p.hanging(first, rest, text)
		first = indent
	}
}

// hanging writes wrapped text. The first line begins with first, the others with rest.
func (p *page) hanging(first, rest, text string) {
	for i, l := range wrap(text, textWidth-len(rest)) {
		if i > 0 {
			first = rest
		}
		p.WriteString(first + l + "\n")
	}
}
