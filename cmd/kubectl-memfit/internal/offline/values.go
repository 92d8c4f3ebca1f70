// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"cmp"
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

// appendJSON appends a tree as JSON. Dates are text, as for kubectl. A duplicate key in a mapping is an error, because
// YAML parsers disagree on its value.
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
	for key, value := range pairs(n) {
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
		if len(first) > 1 {
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(append(append(dst, text...), ':'), value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func isText(n *yaml.Node) bool {
	tag := n.ShortTag()
	return tag == "!!str" || tag == "!!timestamp"
}

// into decodes a tree into a Kubernetes type via JSON, because these types have JSON field names.
func into(n *yaml.Node, out any) error {
	data, err := appendJSON(nil, n)
	if err != nil {
		return err
	}
	return explained(n, kjson.UnmarshalCaseSensitivePreserveInts(data, out)) // "Env" does not match "env"
}

// explained rewrites a decoding error for users: with the expected type, or with value and line of an invalid quantity.
func explained(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		word, _, _ := strings.Cut(wrong.Value, " ") // "number 5"
		return fmt.Errorf("%s is %s and must be %s", wrong.Field, cmp.Or(jsonWords[word], "a "+word),
			cmp.Or(goWords[wrong.Type.Kind()], "a number"))
	}
	if bad := badQuantity(n); bad != nil {
		return fmt.Errorf("line %d: %.64q is not a quantity: %s", bad.Line, bad.Value, instead(bad.Value))
	}
	return err
}

// bytesUnit matches common units that Kubernetes does not accept.
var bytesUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKMGT])i?[bB]$`)

// instead returns how to write a quantity instead of value.
func instead(value string) string {
	if m := bytesUnit.FindStringSubmatch(value); m != nil {
		unit := strings.ToUpper(m[2])
		return fmt.Sprintf("use %s%si (powers of 1024) or %s%s (powers of 1000)", m[1], unit, m[1],
			strings.Replace(unit, "K", "k", 1))
	}
	return "write it like 512Mi, 1Gi or 500m"
}

// quantityFields are the fields of profiles that hold quantities.
var quantityFields = map[string]bool{
	"min": true, "max": true, "minIncrease": true, "heapLimit": true, "reserve": true, "trimThreshold": true,
	"semiSpace": true,
}

// badQuantity finds the first value under limits or requests, or in a field of a profile, that is not a quantity.
func badQuantity(n *yaml.Node) *yaml.Node {
	for key, value := range pairs(n) {
		var quantities []*yaml.Node
		switch name := key.Value; {
		case name == "limits" || name == "requests":
			for _, quantity := range pairs(value) {
				quantities = append(quantities, quantity)
			}
		case quantityFields[name] && value.Kind == yaml.ScalarNode:
			quantities = append(quantities, value)
		}
		for _, quantity := range quantities {
			if _, err := memory.ParseQuantity(quantity.Value); err != nil {
				return quantity
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

// The YAML terms for the type names of encoding/json and for the kinds of Go types.
var (
	jsonWords = map[string]string{"object": "a mapping", "array": "a list", "string": "text", "bool": "true or false"}
	goWords   = map[reflect.Kind]string{
		reflect.String: "text (in quotes)", reflect.Slice: "a list", reflect.Array: "a list", reflect.Map: "a mapping",
		reflect.Struct: "a mapping", reflect.Pointer: "a mapping", reflect.Bool: "true or false",
	}
)
