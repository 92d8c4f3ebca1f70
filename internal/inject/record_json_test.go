// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestRecordIsJSON: the record is written as encoding/json would write it, whatever is in it. Every field is there or
// not by chance.
func TestRecordIsJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "512Mi", `"quoted" \\ <&>`, "é\u2028\x7f\n", "\xff", "a=1 b=2"}
	for range 2000 {
		r := &record{}
		fill(rng, reflect.ValueOf(r).Elem(), texts)
		for name, c := range r.Containers {
			if c == nil {
				delete(r.Containers, name) // add takes none
			}
		}
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
		if got := r.encode() + "\n"; got != want.String() {
			t.Fatalf("wrote\n%swant\n%s", got, want.String())
		}
	}
}

// fill gives a value of the types of a record some content, so that a new field is not forgotten.
func fill(rng *rand.Rand, v reflect.Value, texts []string) {
	if rng.IntN(3) == 0 && v.Type() != reflect.TypeFor[record]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[rng.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(rng.Int64N(1000))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(rng, v.Elem(), texts)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(rng, field, texts)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rng.IntN(4), 4))
		for i := range v.Len() {
			fill(rng, v.Index(i), texts)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range rng.IntN(12) {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(rng, value, texts)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint(texts[rng.IntN(len(texts)-2)], i)), value)
		}
	default:
		panic("a record has a " + v.Type().String())
	}
}
