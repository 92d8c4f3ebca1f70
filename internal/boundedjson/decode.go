// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundedjson decodes JSON that any client may send to the webhook, within bounds of memory and time: [Decode]
// refuses quantities that take minutes to parse, and texts of nearly empty items, which become hundreds of times larger
// in memory.
package boundedjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	gojsonv1 "github.com/go-json-experiment/json/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
)

// Bounds of the memory for a decoded text, in bytes. Go types are far larger than their shortest text: the three bytes
// "{}," are a container of 1 KB. A usual pod takes about twice the size of its text, and no pod that an API server
// stores exceeds the bounds.
const (
	// MinDecoded is the memory that any text may take.
	MinDecoded = 64 << 10
	// DecodedPerByte is the additional memory for each byte of a text.
	DecodedPerByte = 8
)

// BoundsError describes a field of a text that exceeds the bounds.
type BoundsError struct{ Field, Why string }

func (e *BoundsError) Error() string { return strings.TrimLeft(e.Field, ".") + ": " + e.Why }

var errNotJSON = errors.New("it is not JSON")

// asKubernetes are the rules of the decoder of Kubernetes (sigs.k8s.io/json): as encoding/json, with case-sensitive
// names.
var asKubernetes = gojson.JoinOptions(gojsonv1.DefaultOptionsV1(), gojson.MatchCaseInsensitiveNames(false))

// asParts are the same rules, except that decoding ends with the first error.
var asParts = gojson.JoinOptions(asKubernetes, gojsonv1.ReportErrorsWithLegacySemantics(false))

// Parts decodes a text without bounds, into a type that keeps lists, maps and quantities as text ([jsontext.Value]). On
// an error, into has the part before it.
func Parts(text []byte, into any) error { return gojson.Unmarshal(text, into, asParts) }

// Decode checks the bounds of a text and decodes it by the rules of Kubernetes. It returns a [BoundsError] for a
// quantity that takes minutes to parse, or if the text becomes much larger in memory. field is the name of the text in
// errors; empty: the text is a whole object.
func Decode(text []byte, field string, into any) error {
	c := checker{left: MinDecoded + DecodedPerByte*len(text)}
	c.tokens = jsontext.NewDecoder(bytes.NewBuffer(text), duplicateNames, invalidUTF8)
	if err := c.check(shapeOf(reflect.TypeOf(into).Elem())); err != nil {
		return within("."+field, err)
	}
	return gojson.Unmarshal(text, into, asKubernetes)
}

// The check of the bounds must accept what the decoder accepts: of duplicate members, the decoder takes the last one,
// and it replaces invalid UTF-8.
var (
	duplicateNames = jsontext.AllowDuplicateNames(true)
	invalidUTF8    = jsontext.AllowInvalidUTF8(true)
)

type checker struct {
	tokens *jsontext.Decoder
	left   int // bytes of memory left, see [MinDecoded]
}

// check checks the value at the cursor and moves past it.
func (c *checker) check(s *shape) error {
	if c.left -= s.size; c.left < 0 {
		return &BoundsError{Why: fmt.Sprintf("decoding would take more than %d bytes of memory for each of its bytes: "+
			"it has too many nearly empty items", DecodedPerByte)}
	}
	switch start := c.tokens.PeekKind(); {
	case s.quantity:
		value, err := c.tokens.ReadValue()
		if err != nil {
			return errNotJSON
		}
		if err := memory.CheckQuantity([]byte(value)); err != nil {
			return &BoundsError{Why: err.Error()}
		}
		return nil
	case s.item != nil && start == jsontext.KindBeginArray:
		return c.items(s)
	case (s.fields != nil || s.value != nil) && start == jsontext.KindBeginObject:
		return c.members(s)
	}
	return c.skip()
}

// skip moves past the value at the cursor, and token past one token.
func (c *checker) skip() error { return notJSON(c.tokens.SkipValue()) }

func (c *checker) token() error {
	_, err := c.tokens.ReadToken()
	return notJSON(err)
}

func notJSON(err error) error {
	if err != nil {
		return errNotJSON
	}
	return nil
}

// more reports whether the array or object has another item before its end.
func (c *checker) more(end jsontext.Kind) bool {
	kind := c.tokens.PeekKind()
	return kind != end && kind != jsontext.KindInvalid
}

func (c *checker) items(s *shape) error {
	if err := c.token(); err != nil {
		return err
	}
	for i := 0; c.more(jsontext.KindEndArray); i++ {
		if err := c.check(s.item); err != nil {
			return within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return c.token()
}

func (c *checker) members(s *shape) error {
	if err := c.token(); err != nil {
		return err
	}
	for c.more(jsontext.KindEndObject) {
		token, err := c.tokens.ReadToken()
		if err != nil {
			return errNotJSON
		}
		key, value := token.String(), s.value
		if s.fields != nil {
			value = s.fields[key]
		}
		if value == nil {
			err = c.skip()
		} else {
			err = c.check(value)
		}
		if err != nil {
			return within(fmt.Sprintf(".%.60s", key), err)
		}
	}
	return c.token()
}

// within prefixes the field of an error with the name of its parent.
func within(field string, err error) error {
	if exceeded := (*BoundsError)(nil); errors.As(err, &exceeded) {
		exceeded.Field = field + exceeded.Field
	}
	return err
}

// shape describes the memory cost of decoding one Go type.
type shape struct {
	size     int               // of the Go value itself
	quantity bool              // parsing it is expensive
	fields   map[string]*shape // of a struct, by JSON name
	item     *shape            // of a slice
	value    *shape            // of a map
}

var (
	shapes      sync.Map // *shape by reflect.Type
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape) //nolint:forcetypeassert // nothing else is stored
	}
	s := shapeOfType(t, map[reflect.Type]*shape{})
	shapes.Store(t, s)
	return s
}

// shapeOfType stores the shape before it is complete, so that recursive types terminate.
func shapeOfType(t reflect.Type, shapes map[reflect.Type]*shape) *shape {
	if known := shapes[t]; known != nil {
		return known
	}
	s := &shape{size: int(t.Size())}
	shapes[t] = s
	switch {
	case holdsQuantity(t):
		s.quantity = true
	case reflect.PointerTo(t).Implements(unmarshaler): // custom decoding, without quantities
	case t.Kind() == reflect.Pointer:
		inner := shapeOfType(t.Elem(), shapes)
		*s = *inner
		s.size += int(t.Size())
	case t.Kind() == reflect.Slice:
		s.item = shapeOfType(t.Elem(), shapes)
	case t.Kind() == reflect.Map:
		const perEntry = 32 // the key, and the map's overhead
		value := *shapeOfType(t.Elem(), shapes)
		value.size += perEntry
		s.value = &value
	case t.Kind() == reflect.Struct:
		s.fields = map[string]*shape{}
		s.add(t, shapes)
	}
	return s
}

// holdsQuantity reports whether t is a quantity, or an API type that embeds one.
func holdsQuantity(t reflect.Type) bool {
	quantity := reflect.TypeFor[resource.Quantity]()
	return t == quantity ||
		t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous && t.Field(0).Type == quantity
}

// add adds the fields of a struct. s.size includes the fields themselves, so they add only the memory to which they
// point.
func (s *shape) add(t reflect.Type, shapes map[reflect.Type]*shape) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			s.add(f.Type, shapes)
		case f.IsExported():
			field := *shapeOfType(f.Type, shapes)
			field.size -= int(f.Type.Size())
			s.fields[cmp.Or(name, f.Name)] = &field
		}
	}
}
