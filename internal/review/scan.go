// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import "bytes"

// members calls visit for every member of the JSON object b until visit returns false. ok is false when b is not an object, is
// cut off, or has an escaped key, which no API server writes. Values are walked, not validated: whoever decodes one does that.
func members(b []byte, visit func(key, value []byte) (more bool)) (ok bool) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for i < len(b) && b[i] == '"' {
		end := text(b, i)
		if end < 0 {
			return false
		}
		key := b[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			return false
		}
		if i = space(b, end); i >= len(b) || b[i] != ':' {
			return false
		}
		start := space(b, i+1)
		if end = value(b, start); end < 0 {
			return false
		}
		if !visit(key, b[start:end]) {
			return true
		}
		if i = space(b, end); i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = space(b, i+1)
	}
	return false
}

// items calls visit for every item of the JSON array b.
func items(b []byte, visit func(item []byte) (ok bool)) (ok bool) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return true
	}
	for i < len(b) {
		end := value(b, i)
		if end < 0 || !visit(b[i:end]) {
			return false
		}
		if i = space(b, end); i >= len(b) {
			return false
		}
		if b[i] == ']' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = space(b, i+1)
	}
	return false
}

// value returns the index after the value that starts at i, or -1.
func value(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return text(b, i)
	case '{', '[':
		return nested(b, i)
	case ',', ':', '}', ']':
		return -1
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// nested returns the index after the object or array that starts at i, or -1.
func nested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = text(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// text returns the index after the string that starts at i, or -1.
func text(b []byte, i int) int {
	for i++; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		escapes := 0
		for j := i + n - 1; j >= i && b[j] == '\\'; j-- {
			escapes++
		}
		i += n
		if escapes%2 == 0 {
			return i + 1
		}
	}
	return -1
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// plain is the content of a JSON string that needs no decoding: ASCII without escapes.
func plain(v []byte) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	inner := v[1 : len(v)-1]
	for _, c := range inner {
		if c == '\\' || c < ' ' || c >= 0x80 {
			return "", false
		}
	}
	return string(inner), true
}
