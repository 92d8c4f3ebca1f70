// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document of a stream, or one JSON object.
type document struct {
	// marker is the "---" line before it, as it stands, or empty; raw is the rest, up to the next marker.
	marker, raw []byte
	// root is raw as a tree, nil for a document that holds nothing but comments.
	root *yaml.Node
	// changed: root differs from raw.
	changed bool
}

// split cuts a stream at its markers. A line that begins with "---" is one wherever it stands: YAML allows no other meaning.
func split(data []byte) []*document {
	docs := []*document{{}}
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line = data[:i+1]
		}
		data = data[len(line):]
		last := docs[len(docs)-1]
		if isMarker(line) {
			docs = append(docs, &document{marker: line})
			continue
		}
		last.raw = append(last.raw, line...)
	}
	return docs
}

func isMarker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' && bytes.TrimSpace(rest)[0] == '#')
}

// parse reads the document's tree.
func (d *document) parse() error {
	var root yaml.Node
	if err := yaml.Unmarshal(d.raw, &root); err != nil {
		return err
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	left := nodesMax
	if root.Content[0] = expand(root.Content[0], &left, depthMax); left < 0 {
		return fmt.Errorf("its aliases stand for more than %d values, or for themselves", nodesMax)
	}
	d.root = &root
	return nil
}

// nodesMax bounds a document with its aliases written out. A large List of a thousand Deployments has some 200,000 values.
const nodesMax = 2_000_000

// depthMax bounds how deep they may stand; an alias for itself stands infinitely deep.
const depthMax = 1000

// expand writes aliases out, so that a change in one place cannot reach another. It stops when left is used up.
func expand(n *yaml.Node, left *int, depth int) *yaml.Node {
	if depth == 0 {
		*left = -1
		return n
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := *n
	c.Anchor = ""
	c.Content = make([]*yaml.Node, 0, len(n.Content))
	for _, child := range n.Content {
		if *left--; *left < 0 {
			return &c
		}
		c.Content = append(c.Content, expand(child, left, depth-1))
	}
	return &c
}

// object is the top mapping, nil when there is none.
func (d *document) object() *yaml.Node {
	if d.root == nil {
		return nil
	}
	return d.root.Content[0]
}

// json reports whether the document is written as JSON, which stays JSON.
func (d *document) json() bool {
	return bytes.HasPrefix(bytes.TrimSpace(d.raw), []byte("{"))
}

// bytes is the document as it goes out.
func (d *document) bytes() ([]byte, error) {
	if !d.changed {
		return append(bytes.Clone(d.marker), d.raw...), nil
	}
	out, err := d.encode(d.root)
	return append(bytes.Clone(d.marker), out...), err
}

// encode writes a tree in the style of the document: JSON or YAML, lists indented as it indents them.
func (d *document) encode(root *yaml.Node) ([]byte, error) {
	if d.json() {
		var value any
		if err := root.Decode(&value); err != nil {
			return nil, err
		}
		out, err := json.MarshalIndent(value, "", "  ")
		return append(out, '\n'), err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if compact(root) {
		e.CompactSeqIndent()
	}
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// compact reports whether the first block list stands at the column of its key ("containers:\n- name: app").
func compact(n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if value.Kind == yaml.SequenceNode && value.Style&yaml.FlowStyle == 0 && value.Line > key.Line {
				return value.Column == key.Column
			}
		}
	}
	for _, c := range n.Content {
		if c.Kind == yaml.MappingNode && compact(c) {
			return true
		}
	}
	return false
}

// get is the value of key in a mapping; nil when n is no mapping or has no such key.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return n
}

// text is the scalar at path; empty when there is none.
func text(n *yaml.Node, path ...string) string {
	if v := get(n, path...); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// into decodes a tree into a Kubernetes type, by way of JSON, whose field names those types have.
func into(n *yaml.Node, out any) error {
	var value any
	if err := n.Decode(&value); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("a key is no text: %w", err)
	}
	return json.Unmarshal(data, out)
}
