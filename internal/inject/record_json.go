// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// encode is compact JSON with "<" and "&" as they are: people read it. It is written by hand, because encoding/json,
// which goes over it by reflection, takes as long as a third of the plan; TestRecordIsJSON holds it to what that would
// write.
func (r *record) encode() string {
	out := make([]byte, 0, 1<<10) // most records have less
	out = strconv.AppendInt(append(out, `{"v":`...), int64(r.Version), 10)
	out = appendString(append(out, `,"profile":`...), r.Profile)
	if r.Generation != 0 {
		out = strconv.AppendInt(append(out, `,"generation":`...), r.Generation, 10)
	}
	if r.Pod != nil {
		out = r.Pod.append(append(out, `,"pod":`...))
	}
	room := [8]string{}
	for i, name := range sortedKeys(room[:0], r.Containers) {
		if i == 0 {
			out = append(out, `,"containers":{`...)
		} else {
			out = append(out, ',')
		}
		out = r.Containers[name].append(append(appendString(out, name), ':'))
	}
	if len(r.Containers) > 0 {
		out = append(out, '}')
	}
	return string(append(out, '}'))
}

// append appends the part about one container: what is empty is left out.
func (r *containerRecord) append(out []byte) []byte {
	o := object{text: append(out, '{')}
	if r.DryRun {
		o.key("dryRun")
		o.text = append(o.text, "true"...)
	}
	o.str("limit", r.Limit)
	o.str("limitFrom", r.LimitFrom)
	if r.Owner != nil {
		o.key("owner")
		owner := object{text: append(o.text, '{')}
		owner.str("limit", r.Owner.Limit)
		owner.str("request", r.Owner.Request)
		o.text = append(owner.text, '}')
	}
	if r.Processes != 0 {
		o.key("processes")
		o.text = strconv.AppendInt(o.text, int64(r.Processes), 10)
	}
	o.str("program", r.Program)
	o.str("resizePolicy", r.ResizePolicy)
	o.str("runtime", r.Runtime)
	o.strings("set", r.Set)
	if r.Size != nil {
		o.key("size")
		o.text = r.Size.append(o.text)
	}
	o.strings("skipped", r.Skipped)
	if len(r.Taken) > 0 {
		o.key("taken")
		for i, name := range r.Taken {
			o.text = appendString(append(o.text, "[,"[min(i, 1)]), name)
		}
		o.text = append(o.text, ']')
	}
	o.strings("was", r.Was)
	return append(o.text, '}')
}

func (r *sizeRecord) append(out []byte) []byte {
	o := object{text: append(out, '{')}
	o.str("limit", r.Limit)
	o.str("request", r.Request)
	o.str("wasLimit", r.WasLimit)
	o.str("wasRequest", r.WasRequest)
	o.str("why", r.Why)
	return append(o.text, '}')
}

// object is the text of a JSON object as it grows.
type object struct {
	text  []byte
	begun bool // something is in it
}

func (o *object) key(name string) {
	if o.begun {
		o.text = append(o.text, ',')
	}
	o.begun = true
	o.text = append(append(append(o.text, '"'), name...), `":`...)
}

// str adds a string, unless it is empty.
func (o *object) str(name, value string) {
	if value != "" {
		o.key(name)
		o.text = appendString(o.text, value)
	}
}

// strings adds a map in the order of its keys, unless it is empty.
func (o *object) strings(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	o.key(name)
	room := [8]string{}
	for i, key := range sortedKeys(room[:0], values) {
		o.text = appendString(append(o.text, "{,"[min(i, 1)]), key)
		o.text = appendString(append(o.text, ':'), values[key])
	}
	o.text = append(o.text, '}')
}

// sortedKeys are the keys of a map in order, in the memory of out as far as it reaches.
func sortedKeys[V any](out []string, values map[string]V) []string {
	for key := range values {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// appendString appends a JSON string.
func appendString(out []byte, text string) []byte {
	start, copied := len(out), 0
	out = append(out, '"')
	for i := range len(text) {
		switch b := text[i]; {
		case b < ' ' || b >= 0x7f: // not printable ASCII: what is to be escaped is for the library to say
			return append(out[:start], quoted(text)...)
		case b == '"' || b == '\\':
			out = append(append(out, text[copied:i]...), '\\')
			copied = i
		}
	}
	return append(append(out, text[copied:]...), '"')
}

func quoted(text string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil { // strings always encode
		return []byte(`""`)
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}
