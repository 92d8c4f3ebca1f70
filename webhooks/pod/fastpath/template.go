// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"encoding/binary"
	"slices"
	"strings"
)

// AppendTemplate appends all that [Review.Rest] reads of the pod's spec, in the request's own bytes and with more
// around it, and the pod's annotations that begin with prefix, and says whether the request is a dry run. Of two pods
// with the same template, Rest reads the same spec and the same outline of it; what the API server gives each replica
// of its own, above all the name of the volume with its token, is not in it. ok is false when anything is unusual.
//
// Whoever can reach the webhook can send it any bytes, so no text may stand for two templates: pieces are written with
// their lengths.
func (r *Review) AppendTemplate(out []byte, prefix string) (template []byte, dryRun, ok bool) {
	c := r.spec
	s := spec{c: &c, inMemory: true}
	out = r.annotations(out, prefix)
	out = s.template(out)
	dryRun = afterSpec(&c)
	return out, dryRun, !c.Unsupported
}

func (r *Review) annotations(out []byte, prefix string) []byte {
	if r.Meta.Annotations == nil {
		return append(out, '0')
	}
	keys := make([]string, 0, 4)
	for key := range r.Meta.Annotations {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		out = piece(piece(out, key), r.Meta.Annotations[key])
	}
	return append(out, '.')
}

func (s *spec) template(out []byte) []byte {
	c := s.c
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		bit, found := specFields.find(key)
		if !found {
			c.Skip()
			continue
		}
		c.Once(&seen, bit) // volumes that come twice would look like one list of both
		switch string(key) {
		case "containers", "initContainers":
			out = s.containersTemplate(piece(out, key))
		case "volumes":
			out = s.volumesTemplate(out, key)
		default:
			out = piece(piece(out, key), c.Raw())
		}
	}
	return append(out, '.')
}

func (s *spec) containersTemplate(out []byte) []byte {
	c := s.c
	if c.Null() {
		return append(out, '0')
	}
	c.Array()
	for c.Item() {
		c.Object()
		var seen uint32
		for key, more := c.Member(); more; key, more = c.Member() {
			bit, found := containerFields.find(key)
			if !found || string(key) == "volumeMounts" && !s.inMemory {
				c.Skip()
				continue
			}
			c.Once(&seen, bit)
			out = piece(piece(out, key), c.Raw())
		}
		out = append(out, ',')
	}
	return append(out, '.')
}

// volumesTemplate is empty when no volume is in memory.
func (s *spec) volumesTemplate(out, key []byte) []byte {
	c := s.c
	s.inMemory = false
	if c.Null() {
		return out
	}
	c.Array()
	for c.Item() {
		if volume := c.Raw(); mayBeInMemory(volume) {
			s.inMemory = true
			out = piece(piece(out, key), volume)
		}
	}
	return out
}

// piece appends a text of any bytes. Its first byte is none of the marks that stand between pieces.
func piece[T []byte | string](out []byte, text T) []byte {
	return append(binary.AppendUvarint(append(out, '"'), uint64(len(text))), text...)
}
