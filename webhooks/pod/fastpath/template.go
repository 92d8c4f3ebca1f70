// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/boundedjson"
)

// AppendTemplate appends all that [Review.Rest] reads of the pod's spec, in the request's own bytes, and says whether
// the request is a dry run. It may be asked once: it moves to the end of the review. Replicas of a workload have one
// template: what the API server gives each of them of its own, above all the name of the volume with its token, is
// not in it. ok is false when anything is unusual.
//
// Whoever can reach the webhook can send it any bytes, so no text may stand for two templates: pieces are written with
// their lengths. The fields are those of [inject.PodFields].
func (r *Review) AppendTemplate(out []byte) (template []byte, dryRun, ok bool) {
	s := spec{c: r.spec, inMemory: true}
	out = s.template(out)
	dryRun = afterSpec(r.spec)
	return out, dryRun, !r.spec.Unsupported
}

// Marks stand between the pieces of a template.
const (
	pieceMark = '"' // begins a piece: its length and its bytes follow
	nextMark  = ',' // ends a container
	endMark   = '.' // ends the spec or a list
	nullMark  = '0' // stands for a list that is null
)

// piece appends a text of any bytes.
func piece[T []byte | string](out []byte, text T) []byte {
	return append(binary.AppendUvarint(append(out, pieceMark), uint64(len(text))), text...)
}

// AppendAnnotations appends the pod's annotations that begin with prefix to a template. Pods of which the result is
// equal are alike in all that [Review.Rest] reads but their names, their labels and their other annotations.
func (r *Review) AppendAnnotations(out []byte, prefix string) []byte {
	if r.Meta.Annotations == nil {
		return append(out, nullMark)
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
	return append(out, endMark)
}

// spec is a pod's spec as it is read.
type spec struct {
	c *boundedjson.Scanner
	// inMemory is false once it is known that no volume is in memory, so that mounts mean nothing.
	inMemory bool
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
			out = s.containers(piece(out, key))
		case "volumes":
			out = s.volumes(out, key)
		default:
			out = piece(piece(out, key), c.Raw())
		}
	}
	return append(out, endMark)
}

func (s *spec) containers(out []byte) []byte {
	c := s.c
	if c.Null() {
		return append(out, nullMark)
	}
	c.Array()
	for c.Item() {
		out = append(s.container(out), nextMark)
	}
	return append(out, endMark)
}

func (s *spec) container(out []byte) []byte {
	c := s.c
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
	return out
}

// volumes appends those that may be in memory, which count against the limit. The rest, with their many fields, mean
// nothing to a plan.
func (s *spec) volumes(out, key []byte) []byte {
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

// mayBeInMemory is false of a volume that certainly is not. A text with escapes may spell anything.
func mayBeInMemory(volume []byte) bool {
	return bytes.Contains(volume, []byte(`"emptyDir"`)) &&
		bytes.Contains(volume, []byte(`"`+string(corev1.StorageMediumMemory)+`"`)) || bytes.IndexByte(volume, '\\') >= 0
}

// afterSpec moves over what comes after the pod's spec; dryRun is what the request says.
func afterSpec(c *boundedjson.Scanner) (dryRun bool) {
	rest(c, "metadata", "spec") // of the pod: its status says nothing yet
	var seen uint32
	for key, more := c.Member(); more; key, more = c.Member() { // of the request
		switch string(key) {
		case "dryRun":
			c.Once(&seen, 0)
			dryRun = c.Bool()
		case "uid", "namespace", "object":
			c.Unsupported = true
		default:
			c.Skip()
		}
	}
	rest(c, "apiVersion", "kind", "request") // of the review
	c.End()
	return dryRun
}

// rest moves out of an object of which all that matters was read, and must not come again.
func rest(c *boundedjson.Scanner, read ...string) {
	for key, more := c.Member(); more; key, more = c.Member() {
		if slices.Contains(read, string(key)) {
			c.Unsupported = true
		}
		c.Skip()
	}
}
