// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/memory"
)

// decode is a tree as values. What looks like a date is text, as it is for kubectl.
func decode(n *yaml.Node) (any, error) {
	if err := eachOnce(n); err != nil {
		return nil, err
	}
	var undated func(n *yaml.Node) *yaml.Node
	undated = func(n *yaml.Node) *yaml.Node {
		c := *n
		if c.Kind == yaml.ScalarNode && c.ShortTag() == "!!timestamp" {
			c.Tag = "!!str"
		}
		c.Content = make([]*yaml.Node, len(n.Content))
		for i, child := range n.Content {
			c.Content[i] = undated(child)
		}
		return &c
	}
	var value any
	err := undated(n).Decode(&value)
	return value, err
}

// eachOnce refuses the first key that stands twice in its mapping. The YAML library would report every pair of them: 20
// KB that repeat one key ten thousand times took it 26 GB.
func eachOnce(n *yaml.Node) error {
	type key struct {
		kind yaml.Kind
		text string
	}
	first := map[key]int{}
	for i, child := range n.Content {
		if err := eachOnce(child); err != nil {
			return err
		}
		if n.Kind != yaml.MappingNode || i%2 != 0 {
			continue
		}
		k := key{child.Kind, child.Value}
		if line, twice := first[k]; twice {
			return fmt.Errorf(
				"line %d: %.64q stands twice in one mapping, for the first time in line %d", child.Line, child.Value, line,
			)
		}
		first[k] = child.Line
	}
	return nil
}

// into decodes a tree into a Kubernetes type, by way of JSON, whose field names those types have.
func into(n *yaml.Node, out any) error {
	value, err := decode(n)
	if err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("a key is no text: %w", err)
	}
	return plainly(n, kjson.UnmarshalCaseSensitivePreserveInts(data, out)) // as the API server reads: "Env" is not env
}

// plainly says what a value should be, and for sizes, whose error names neither value nor place, which one it is.
func plainly(n *yaml.Node, err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is %s and must be %s", wrong.Field, jsonWord(wrong.Value), yamlWord(wrong.Type.Kind()))
	}
	if bad := badQuantity(n); bad != nil {
		return fmt.Errorf("line %d: %q is no size: write it like 512Mi, 1Gi or 500m", bad.Line, bad.Value)
	}
	return err
}

// badQuantity finds the first value under limits or requests that is none.
func badQuantity(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		for j := 1; (n.Content[i].Value == "limits" || n.Content[i].Value == "requests") && j < len(value.Content); j += 2 {
			if _, err := memory.ParseQuantity(value.Content[j].Value); err != nil {
				return value.Content[j]
			}
		}
	}
	for _, child := range n.Content {
		if bad := badQuantity(child); bad != nil {
			return bad
		}
	}
	return nil
}

// jsonWord is what encoding/json calls a value, as people who write YAML call it.
func jsonWord(value string) string {
	word, _, _ := strings.Cut(value, " ") // "number 5"
	if known := map[string]string{
		"object": "a mapping", "array": "a list", "string": "text", "bool": "true or false",
	}[word]; known != "" {
		return known
	}
	return "a " + word
}

func yamlWord(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "text (in quotes)"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "a mapping"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}
