// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package boundedjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/resource"
	sigsjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/memory"
)

// What a text may become in memory. Go types are far larger than the least text that makes one: "{}," of three bytes is
// a container of one KB. A usual pod becomes about twice its text, and no pod that an API server would store more than
// this.
const (
	// MinDecoded may be taken by any text.
	MinDecoded = 64 << 10
	// DecodedPerByte may be taken for each byte of a text besides.
	DecodedPerByte = 8
)

// BoundsError says what of a text is beyond the bounds within which it is read at all. It is the sender's doing, not a
// failure.
type BoundsError struct{ Field, Why string }

func (e *BoundsError) Error() string { return strings.TrimPrefix(e.Field, ".") + ": " + e.Why }

var errNotJSON = errors.New("it is no JSON")

// Decode decodes a text the usual way. Before it does, it makes sure that nothing in it takes more than it should: no
// quantity that takes minutes to read, nothing that becomes much larger in memory than it is.
func Decode(text []byte, into any) error {
	if err := Check(text, into); err != nil {
		return err
	}
	return sigsjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// Check says why a text may not be decoded into a value of that type; nil when it may. That the text can be decoded it
// does not say.
func Check(text []byte, into any) error {
	c := scanners.Get().(*checker) //nolint:forcetypeassert // nothing else is in there
	defer func() {
		c.Reset(nil) // so that nothing keeps the text
		scanners.Put(c)
	}()
	c.Reset(text)
	if err := c.check(shapeOf(reflect.TypeOf(into).Elem())); err != nil {
		return err
	}
	if c.Unsupported {
		return errNotJSON
	}
	return nil
}

// checker walks over a text as a decoder does.
type checker struct{ Scanner }

// scanners are used again: a checker is larger than most texts that are checked.
var scanners = sync.Pool{New: func() any { return new(checker) }}

// check looks at the value at the cursor and moves behind it.
func (c *checker) check(s *shape) *BoundsError {
	if c.Pay(s.size); c.left < 0 {
		return &BoundsError{
			Why: fmt.Sprintf(
				"it would take more than %d bytes of memory for each of its own: it has too many items that are nearly empty",
				DecodedPerByte,
			),
		}
	}
	start := c.tokens.PeekKind()
	switch {
	case s.quantity:
		if err := memory.CheckQuantity(c.Raw()); err != nil {
			return &BoundsError{Why: err.Error()}
		}
	case s.item != nil && start == jsontext.KindBeginArray:
		return c.items(s)
	case (s.fields != nil || s.value != nil) && start == jsontext.KindBeginObject:
		return c.members(s)
	default:
		c.Skip()
	}
	return nil
}

func (c *checker) items(s *shape) *BoundsError {
	c.Array()
	for i := 0; c.Item(); i++ {
		if err := c.check(s.item); err != nil {
			err.Field = fmt.Sprintf("[%d]%s", i, err.Field)
			return err
		}
	}
	return nil
}

func (c *checker) members(s *shape) *BoundsError {
	c.Object()
	for {
		key, more := c.key()
		if !more {
			return nil
		}
		value := s.value
		if s.fields != nil {
			value = s.fields[key]
		}
		if value == nil {
			c.Skip()
			continue
		}
		if err := c.check(value); err != nil {
			err.Field = fmt.Sprintf(".%.60s%s", key, err.Field)
			return err
		}
	}
}

// key is [Scanner.Member] with keys that need decoding.
func (c *checker) key() (key string, more bool) {
	if !c.next(jsontext.KindEndObject) {
		return "", false
	}
	text := c.Raw()
	if inner, ok := quoted(text); ok {
		return string(inner), true
	}
	if json.Unmarshal(text, &key) != nil {
		c.Unsupported = true
	}
	return key, !c.Unsupported
}

// shape is what a decoder makes of a value of one Go type, as far as it costs something.
type shape struct {
	size     int               // of the Go value itself
	quantity bool              // reading it computes
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
		return known.(*shape) //nolint:forcetypeassert // nothing else is in there
	}
	s := shapeOfType(t, map[reflect.Type]*shape{})
	shapes.Store(t, s)
	return s
}

// shapeOfType remembers what it has begun, so that a type that contains itself comes to an end.
func shapeOfType(t reflect.Type, shapes map[reflect.Type]*shape) *shape {
	if known := shapes[t]; known != nil {
		return known
	}
	s := &shape{size: int(t.Size())}
	shapes[t] = s
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		s.quantity = true
	case reflect.PointerTo(t).Implements(unmarshaler): // reads a text of its own, which has no quantities
	case t.Kind() == reflect.Pointer:
		inner := shapeOfType(t.Elem(), shapes)
		*s = *inner
		s.size += int(t.Size())
	case t.Kind() == reflect.Slice:
		s.item = shapeOfType(t.Elem(), shapes)
	case t.Kind() == reflect.Map:
		const perEntry = 32 // the key, and what the map itself needs
		value := *shapeOfType(t.Elem(), shapes)
		value.size += perEntry
		s.value = &value
	case t.Kind() == reflect.Struct:
		s.fields = map[string]*shape{}
		s.add(t, shapes)
	}
	return s
}

// add adds the fields of a struct. They are part of its size already, so only what they refer to costs more.
func (s *shape) add(t reflect.Type, shapes map[reflect.Type]*shape) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			s.add(f.Type, shapes)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			field := *shapeOfType(f.Type, shapes)
			field.size -= int(f.Type.Size())
			s.fields[name] = &field
		}
	}
}
