// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/boundedjson"
)

// Review is an AdmissionReview of version v1 for a new pod. [Read] reads it up to the pod's spec; [Review.Rest] goes on
// from there.
type Review struct {
	UID       types.UID
	Namespace string
	// Meta is of the pod's metadata what decides who governs it: names, labels, annotations and owners.
	Meta metav1.ObjectMeta

	spec *boundedjson.Scanner // before the pod's spec
}

// Read reads a review as far as most pods need it. ok is false when it is anything else than a new pod in an
// AdmissionReview v1, or written in any way unlike an API server's. What comes after the metadata is not looked at: it
// could not change the answer for a pod that nobody governs, unless something comes twice, which only somebody writes
// who asks himself and who gets the answer himself.
//
// The scanner belongs to the review as long as that is read.
func Read(c *boundedjson.Scanner, body []byte) (r Review, ok bool) {
	c.Reset(body)
	version, kind := false, false
	var seen uint32
	c.Object()
	for {
		key, more := c.Member()
		if !more {
			return Review{}, false
		}
		switch string(key) {
		case "apiVersion":
			c.Once(&seen, 0)
			version = string(c.Raw()) == `"admission.k8s.io/v1"`
		case "kind":
			c.Once(&seen, 1)
			kind = string(c.Raw()) == `"AdmissionReview"`
		case "request":
			if !version || !kind {
				return Review{}, false
			}
			if r.request(c); c.Unsupported || r.UID == "" {
				return Review{}, false
			}
			return r, true
		default:
			c.Skip()
		}
	}
}

// UID is the UID of a request of which perhaps only the beginning is there, so that even then it can be answered; false
// when it is not among that.
func UID(beginning []byte) (uid types.UID, ok bool) {
	var c boundedjson.Scanner
	c.Reset(beginning)
	for _, name := range []string{"request", "uid"} {
		c.Object()
		key, more := c.Member()
		for ; more && string(key) != name; key, more = c.Member() {
			c.Skip()
		}
		if !more {
			return "", false
		}
	}
	uid = types.UID(c.ASCII())
	return uid, !c.Unsupported && uid != ""
}

// request reads what comes before the object, and of the object what comes before the spec.
func (r *Review) request(c *boundedjson.Scanner) {
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		switch string(key) {
		case "uid":
			c.Once(&seen, 0)
			r.UID = types.UID(c.ASCII())
		case "namespace":
			c.Once(&seen, 1)
			r.Namespace = c.ASCII()
		case "dryRun": // after the object, where Rest finds it
			c.Unsupported = true
		case "object":
			r.object(c)
			c.Unsupported = c.Unsupported || r.Namespace == "" // every pod has one, and it comes before the pod
			return
		default:
			c.Skip()
		}
	}
	c.Unsupported = true // no object
}

func (r *Review) object(c *boundedjson.Scanner) {
	known := false
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		switch string(key) {
		case "metadata":
			c.Once(&seen, 0)
			metadata(c, &r.Meta)
			known = true
		case "spec":
			c.Unsupported = c.Unsupported || !known
			r.spec = c
			return
		default:
			c.Skip()
		}
	}
	c.Unsupported = true // no pod is without a spec
}

func metadata(c *boundedjson.Scanner, into *metav1.ObjectMeta) {
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		switch string(key) {
		case "name":
			c.Once(&seen, 0)
			into.Name = c.ASCII()
		case "generateName":
			c.Once(&seen, 1)
			into.GenerateName = c.ASCII()
		case "namespace":
			c.Once(&seen, 2)
			into.Namespace = c.ASCII()
		case "uid":
			c.Once(&seen, 3)
			into.UID = types.UID(c.ASCII())
		case "labels":
			c.Once(&seen, 4)
			into.Labels = pairs(c)
		case "annotations":
			c.Once(&seen, 5)
			into.Annotations = pairs(c)
		case "ownerReferences":
			c.Once(&seen, 6)
			into.OwnerReferences = owners(c)
		default:
			c.Skip()
		}
	}
}

// pairs is a map of strings.
func pairs(c *boundedjson.Scanner) map[string]string {
	if c.Null() {
		return nil
	}
	out := make(map[string]string, 8)
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		c.Pay(sizeOfPair)
		known := len(out)
		out[c.String(key)] = c.Text()
		c.Unsupported = c.Unsupported || len(out) == known // it came twice
	}
	return out
}

// sizeOfPair is what an entry of a map of strings takes: two strings, and what the map itself needs.
const sizeOfPair = 48

func owners(c *boundedjson.Scanner) []metav1.OwnerReference {
	if c.Null() {
		return nil
	}
	out := make([]metav1.OwnerReference, 0, 1)
	c.Array()
	for c.Item() {
		var o metav1.OwnerReference
		var seen uint32
		c.Pay(int(unsafe.Sizeof(o)))
		c.Object()
		for key, more := c.Member(); more; key, more = c.Member() {
			switch string(key) {
			case "apiVersion":
				c.Once(&seen, 0)
				o.APIVersion = c.ASCII()
			case "kind":
				c.Once(&seen, 1)
				o.Kind = c.ASCII()
			case "name":
				c.Once(&seen, 2)
				o.Name = c.ASCII()
			case "uid":
				c.Once(&seen, 3)
				o.UID = types.UID(c.ASCII())
			case "controller":
				c.Once(&seen, 4)
				o.Controller = new(c.Bool())
			case "blockOwnerDeletion":
				c.Once(&seen, 5)
				o.BlockOwnerDeletion = new(c.Bool())
			default:
				c.Skip()
			}
		}
		out = append(out, o)
	}
	return out
}
