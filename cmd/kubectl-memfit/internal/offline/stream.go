// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document of a stream, or one JSON object.
type document struct {
	marker       []byte // the "---" before the document, or empty
	raw          []byte // the input after the marker
	line         int    // of the start of raw in the stream, counted from 1
	hasWorkloads bool
	title        string // of the first workload
	text         []byte // the output; nil: unchanged
}

// split splits a stream at each line that starts with "---". Text after the marker belongs to the new document.
func split(data []byte) []*document {
	docs := []*document{{line: 1}}
	begin, at, number := 0, 0, 0 // offsets of the document and of the line, and the line's number
	end := func() { docs[len(docs)-1].raw = data[begin:at:at] }
	for line := range bytes.Lines(data) {
		number++
		if marker, rest, ok := cutMarker(line); ok {
			end()
			begin = at + len(marker)
			docs = append(docs, &document{marker: marker, line: number + 1})
			if len(rest) > 0 {
				docs[len(docs)-1].line = number
			}
		}
		at += len(line)
	}
	end()
	return docs
}

// cutMarker splits a line into the marker, with a comment, and the text after it.
func cutMarker(line []byte) (marker, rest []byte, ok bool) {
	after, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok || len(after) > 0 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(after[0])) {
		return nil, nil, false
	}
	if text := bytes.TrimSpace(after); len(text) == 0 || text[0] == '#' {
		return line, nil, true
	}
	return line[:4], line[4:], true
}

// tree parses a document. It returns nil if the document is empty, a list or a scalar.
func (d *document) tree() (*yaml.Node, error) {
	if d.directives() {
		return nil, nil //nolint:nilnil // a document without an object is not an error
	}
	var root yaml.Node
	if err := yaml.Unmarshal(d.raw, &root); err != nil {
		return nil, err
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, nil //nolint:nilnil // as above
	}
	if d.continues() {
		return nil, fmt.Errorf("content follows the end of the document (\"...\"): begin the next document with \"---\"")
	}
	top := root.Content[0]
	m := measure{lines: max(d.line-1, 0)}
	m.value(top, 0)
	most := min(nodesMax, aliasFactor*m.values+aliasValues)
	left := most - m.values
	if m.aliases {
		left = most
		top = expand(top, &left, depthMax)
	}
	if left < 0 || m.deepest > depthMax {
		return nil, fmt.Errorf(
			"the document has more than %d values, expanded aliases included, or nests them more than %d levels deep: replace "+
				"aliases with their values, or split the document", most, depthMax,
		)
	}
	root.Content[0] = top
	return &root, nil
}

// measure counts the values of a tree. It also makes line numbers relative to the stream, removes
// anchors, and writes nulls out.
type measure struct {
	lines   int // before the document
	values  int
	deepest int
	aliases bool // aliases or merge keys must be expanded
}

func (m *measure) value(n *yaml.Node, depth int) {
	m.values++
	m.deepest = max(m.deepest, depth)
	m.aliases = m.aliases || n.Kind == yaml.AliasNode || n.Tag == "!!merge"
	n.Line += m.lines
	n.Anchor = ""
	for _, child := range n.Content {
		m.value(child, depth+1)
		spellNull(n, child)
	}
}

// spellNull writes {a: } as {a: null}; the encoder would write an empty string.
func spellNull(parent, child *yaml.Node) {
	if parent.Style&yaml.FlowStyle != 0 && child.Tag == "!!null" && child.Value == "" {
		child.Value = "null"
	}
}

// directives reports whether the document has only directives ("%YAML 1.2") and comments.
func (d *document) directives() bool {
	found := false
	for line := range bytes.Lines(d.raw) {
		switch line = bytes.TrimSpace(line); {
		case len(line) > 0 && line[0] == '%':
			found = true
		case len(line) > 0 && line[0] != '#':
			return false
		}
	}
	return found
}

// continues reports whether content follows the line "...", which ends a document. The parser would drop this content.
func (d *document) continues() bool {
	ended := false
	for line := range bytes.Lines(d.raw) {
		text := bytes.TrimSpace(line)
		switch end := bytes.HasPrefix(line, []byte("...")) &&
			(len(text) == 3 || bytes.HasPrefix(bytes.TrimSpace(text[3:]), []byte("#"))); {
		case end:
			ended = true
		case ended && len(text) > 0 && text[0] != '#':
			return true
		}
	}
	return false
}

// placedMax is the maximum number of errors with a line number of the stream. Each of them needs another parse.
const placedMax = 10

// placed returns a parser error with the line number in the stream. before is the number of previous errors.
func (d *document) placed(err error, before int) error {
	if d.line == 1 || before >= placedMax {
		return err
	}
	again := document{raw: append(bytes.Repeat([]byte("\n"), d.line-1), d.raw...), line: 1}
	if _, inStream := again.tree(); inStream != nil {
		return inStream
	}
	return err
}

// nodesMax limits the values of a document with expanded aliases. A List of a thousand Deployments has some 200,000.
const nodesMax = 2_000_000

// aliasFactor and aliasValues limit the expansion of aliases, because 400 bytes may expand to a million values (4.4 GiB
// and 5 s). Thirty containers that share a long list of variables have about four times as many values after expansion.
const (
	aliasFactor = 10
	aliasValues = 10_000
)

// depthMax limits the nesting of values. An alias that refers to itself is infinitely deep.
const depthMax = 1000

// expand expands aliases and merge keys, so that a change affects only one place. left is the number of values that the
// result may still have; it is negative if there are more.
func expand(n *yaml.Node, left *int, depth int) *yaml.Node {
	if depth == 0 {
		*left = -1
		return n
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := *n
	c.Content = make([]*yaml.Node, 0, len(n.Content))
	for _, child := range n.Content {
		if *left--; *left < 0 {
			return &c
		}
		part := expand(child, left, depth-1)
		spellNull(&c, part)
		c.Content = append(c.Content, part)
	}
	c.Content = merged(&c)
	return &c
}

// merged returns the pairs of a mapping with those of its merge keys. The pairs of the mapping take precedence.
func merged(n *yaml.Node) []*yaml.Node {
	isMerge := func(key *yaml.Node) bool { return key.Tag == "!!merge" }
	if n.Kind != yaml.MappingNode || !slices.ContainsFunc(n.Content, isMerge) {
		return n.Content
	}
	own := make(map[string]bool)
	for key := range pairs(n) {
		own[key.Value] = !isMerge(key)
	}
	var out []*yaml.Node
	for key, value := range pairs(n) {
		if !isMerge(key) {
			out = append(out, key, value)
			continue
		}
		from := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			from = value.Content
		}
		for _, m := range from {
			for key, value := range pairs(m) {
				if !own[key.Value] {
					own[key.Value] = true
					out = append(out, key, value)
				}
			}
		}
	}
	return out
}

// encode encodes a tree in the style of the document: JSON or YAML, with its indentation of lists.
func (d *document) encode(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	if bytes.HasPrefix(bytes.TrimSpace(d.raw), []byte("{")) { // JSON remains JSON
		text, err := appendJSON(nil, root)
		if err != nil {
			return nil, err
		}
		err = json.Indent(&out, append(text, '\n'), "", "  ")
		return out.Bytes(), err
	}
	tight := compact(root)
	for i, part := range parts(root) {
		begin := out.Len()
		if err := write(&out, part.root, tight); err != nil {
			return nil, err
		}
		if part.continues && i > 0 { // remove the key of the list, which is written already
			text := out.Bytes()[begin:]
			end := bytes.IndexByte(text, '\n') + 1
			out.Truncate(begin + copy(text, text[end:]))
		}
	}
	if bytes.Contains(d.raw, []byte("\r\n")) { // keep Windows line endings
		return bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte("\r\n")), nil
	}
	return out.Bytes(), nil
}

func write(out *bytes.Buffer, root *yaml.Node, tight bool) error {
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	if tight {
		e.CompactSeqIndent()
	}
	if err := e.Encode(root); err != nil {
		return err
	}
	return e.Close()
}

// part is a piece of a document that is encoded separately.
type part struct {
	root      *yaml.Node
	continues bool // root is a further item of the list in the previous part
}

// parts splits a List into a part for each item, because the encoder takes 200 bytes of memory for each byte of output.
func parts(root *yaml.Node) []part {
	top := root.Content[0]
	at := slices.IndexFunc(top.Content, func(n *yaml.Node) bool { return n.Value == "items" })
	if at < 0 || at%2 != 0 || top.Style&yaml.FlowStyle != 0 {
		return []part{{root: root}}
	}
	key, items := top.Content[at], top.Content[at+1]
	if items.Kind != yaml.SequenceNode || items.Style&yaml.FlowStyle != 0 || len(items.Content) < 2 {
		return []part{{root: root}}
	}
	var all []part
	add := func(continues bool, pairs ...*yaml.Node) {
		mapping := *top
		mapping.Content, mapping.HeadComment, mapping.FootComment = pairs, "", ""
		all = append(all, part{&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{&mapping}}, continues})
	}
	if at > 0 {
		add(false, top.Content[:at]...)
	}
	// Comments before the list belong to its first item, those after it to its last.
	for i, end := 0, len(items.Content)-1; i <= end; i++ {
		itemsKey, list := *key, *items
		list.Content = items.Content[i : i+1]
		if i > 0 {
			itemsKey.HeadComment, itemsKey.LineComment, list.HeadComment, list.LineComment = "", "", "", ""
		}
		if i < end {
			itemsKey.FootComment, list.FootComment = "", ""
		}
		add(i > 0, &itemsKey, &list)
	}
	if rest := top.Content[at+2:]; len(rest) > 0 {
		add(false, rest...)
	}
	first, last := all[0].root, all[len(all)-1].root
	first.HeadComment, first.Content[0].HeadComment = root.HeadComment, top.HeadComment
	last.FootComment, last.Content[0].FootComment = root.FootComment, top.FootComment
	return all
}

// compact reports whether the first block list is at the column of its key ("containers:\n- name: app").
func compact(n *yaml.Node) bool {
	for key, value := range pairs(n) {
		if value.Kind == yaml.SequenceNode && value.Style&yaml.FlowStyle == 0 && value.Line > key.Line {
			return value.Column == key.Column
		}
	}
	for _, c := range n.Content {
		if c.Kind == yaml.MappingNode && compact(c) {
			return true
		}
	}
	return false
}

// pairs yields the keys and values of a mapping, and nothing for other nodes and nil.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// get returns the value at a path of keys; nil if it is missing.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		var next *yaml.Node
		for key, value := range pairs(n) {
			if key.Value == name {
				next = value
			}
		}
		n = next
	}
	return n
}

// text returns the scalar at path; empty if missing.
func text(n *yaml.Node, path ...string) string {
	if v := get(n, path...); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}
