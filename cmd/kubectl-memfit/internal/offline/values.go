// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/memory"
)

// appendJSON appends a tree as JSON. Dates are text, as for kubectl. A duplicate key in one mapping is an error,
// because readers differ in which value they use.
func appendJSON(dst []byte, n *yaml.Node) ([]byte, error) {
	switch n.Kind { //nolint:exhaustive // scalars and aliases are below
	case yaml.DocumentNode:
		return appendJSON(dst, n.Content[0])
	case yaml.MappingNode:
		return appendMapping(dst, n)
	case yaml.SequenceNode:
		var err error
		dst = append(dst, '[')
		for i, child := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendJSON(dst, child); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	var value any = n.Value
	if !isText(n) {
		if err := n.Decode(&value); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return append(dst, text...), nil
}

func appendMapping(dst []byte, n *yaml.Node) ([]byte, error) {
	first := make(map[string]int, len(n.Content)/2)
	dst = append(dst, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || !isText(key) {
			return nil, fmt.Errorf("line %d: the key %.64q is not text: put it in quotes", key.Line, key.Value)
		}
		if line, twice := first[key.Value]; twice {
			return nil, fmt.Errorf(
				"line %d: duplicate key %.64q, first used in line %d: remove one of them", key.Line, key.Value, line,
			)
		}
		first[key.Value] = key.Line
		text, err := json.Marshal(key.Value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", key.Line, err)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(append(append(dst, text...), ':'), n.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func isText(n *yaml.Node) bool {
	tag := n.ShortTag()
	return tag == "!!str" || tag == "!!timestamp"
}

// indented returns indented JSON.
func indented(text []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// into decodes a tree into a Kubernetes type via JSON, because these types have JSON field names.
func into(n *yaml.Node, out any) error {
	data, err := appendJSON(nil, n)
	if err != nil {
		return err
	}
	return plainly(n, kjson.UnmarshalCaseSensitivePreserveInts(data, out)) // as in the API server, "Env" is not env
}

// plainly adds the expected type to an error, and for sizes, whose error names neither value nor place, the value.
func plainly(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is %s and must be %s", wrong.Field, jsonWord(wrong.Value), yamlWord(wrong.Type.Kind()))
	}
	if bad := badQuantity(n); bad != nil {
		return fmt.Errorf("line %d: %.64q is not a quantity: %s", bad.Line, bad.Value, instead(bad.Value))
	}
	return err
}

// bytesUnit matches common units that Kubernetes does not accept.
var bytesUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKMGT])i?[bB]$`)

// instead suggests how to write a size.
func instead(value string) string {
	if m := bytesUnit.FindStringSubmatch(value); m != nil {
		unit := strings.ToUpper(m[2])
		return fmt.Sprintf("use %s%si (powers of 1024) or %s%s (powers of 1000)", m[1], unit, m[1],
			strings.Replace(unit, "K", "k", 1))
	}
	return "write it like 512Mi, 1Gi or 500m"
}

// amounts are the fields of profiles that hold quantities.
var amounts = map[string]bool{
	"min": true, "max": true, "minIncrease": true, "heapLimit": true, "reserve": true, "trimThreshold": true,
	"semiSpace": true,
}

// badQuantity finds the first value under limits or requests, or in a field of a profile, that is not a quantity.
func badQuantity(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		for j := 1; (key == "limits" || key == "requests") && j < len(value.Content); j += 2 {
			if _, err := memory.ParseQuantity(value.Content[j].Value); err != nil {
				return value.Content[j]
			}
		}
		if amounts[key] && value.Kind == yaml.ScalarNode {
			if _, err := memory.ParseQuantity(value.Value); err != nil {
				return value
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

// jsonWord translates encoding/json's name of a type to YAML terms.
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
