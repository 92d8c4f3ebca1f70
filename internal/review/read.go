// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Review is an AdmissionReview of version v1 for a new pod. [Read] reads it up to the pod's spec; [Review.Rest] goes on from there.
type Review struct {
	UID       types.UID
	Namespace string
	// Meta is of the pod's metadata what decides who governs it: names, labels, annotations and owners.
	Meta metav1.ObjectMeta

	spec cursor // before the pod's spec
}

// Read reads a review as far as most pods need it. ok is false when it is anything else than a new pod in an AdmissionReview v1,
// or written in any way unlike an API server's. What comes after the metadata is not looked at: it could not change the answer for
// a pod that nobody governs, unless something comes twice, which only somebody writes who asks himself and who gets the answer himself.
func Read(body []byte) (r Review, ok bool) {
	c := cursorOver(body)
	version, kind := false, false
	var seen uint32
	c.object()
	for {
		key, more := c.member()
		if !more {
			return Review{}, false
		}
		switch string(key) {
		case "apiVersion":
			c.once(&seen, 0)
			version = string(c.raw()) == `"admission.k8s.io/v1"`
		case "kind":
			c.once(&seen, 1)
			kind = string(c.raw()) == `"AdmissionReview"`
		case "request":
			if !version || !kind {
				return Review{}, false
			}
			if r.request(&c); c.odd || r.UID == "" {
				return Review{}, false
			}
			return r, true
		default:
			c.skip()
		}
	}
}

// UID is the UID of a request of which perhaps only the beginning is there, so that even then it can be answered; false when it is not
// among that.
func UID(beginning []byte) (uid types.UID, ok bool) {
	c := cursorOver(beginning)
	for _, name := range []string{"request", "uid"} {
		c.object()
		key, more := c.member()
		for ; more && string(key) != name; key, more = c.member() {
			c.skip()
		}
		if !more {
			return "", false
		}
	}
	uid = types.UID(c.ascii())
	return uid, !c.odd && uid != ""
}

// request reads what comes before the object, and of the object what comes before the spec.
func (r *Review) request(c *cursor) {
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "uid":
			c.once(&seen, 0)
			r.UID = types.UID(c.ascii())
		case "namespace":
			c.once(&seen, 1)
			r.Namespace = c.ascii()
		case "dryRun": // after the object, where Rest finds it
			c.odd = true
		case "object":
			r.object(c)
			c.odd = c.odd || r.Namespace == "" // every pod has one, and it comes before the pod
			return
		default:
			c.skip()
		}
	}
	c.odd = true // no object
}

func (r *Review) object(c *cursor) {
	known := false
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "metadata":
			c.once(&seen, 0)
			metadata(c, &r.Meta)
			known = true
		case "spec":
			c.odd = c.odd || !known
			r.spec = *c
			return
		default:
			c.skip()
		}
	}
	c.odd = true // no pod is without a spec
}

func metadata(c *cursor, into *metav1.ObjectMeta) {
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "name":
			c.once(&seen, 0)
			into.Name = c.ascii()
		case "generateName":
			c.once(&seen, 1)
			into.GenerateName = c.ascii()
		case "namespace":
			c.once(&seen, 2)
			into.Namespace = c.ascii()
		case "uid":
			c.once(&seen, 3)
			into.UID = types.UID(c.ascii())
		case "labels":
			c.once(&seen, 4)
			into.Labels = pairs(c)
		case "annotations":
			c.once(&seen, 5)
			into.Annotations = pairs(c)
		case "ownerReferences":
			c.once(&seen, 6)
			into.OwnerReferences = owners(c)
		default:
			c.skip()
		}
	}
}

// pairs is a map of strings.
func pairs(c *cursor) map[string]string {
	if c.null() {
		return nil
	}
	out := make(map[string]string, 8)
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		c.pay(sizeOfPair)
		known := len(out)
		out[string(key)] = c.words()
		c.odd = c.odd || len(out) == known // it came twice
	}
	return out
}

// sizeOfPair is what an entry of a map of strings takes: two strings, and what the map itself needs.
const sizeOfPair = 48

func owners(c *cursor) []metav1.OwnerReference {
	if c.null() {
		return nil
	}
	out := make([]metav1.OwnerReference, 0, 1)
	c.array()
	for c.item() {
		var o metav1.OwnerReference
		var seen uint32
		c.pay(int(unsafe.Sizeof(o)))
		c.object()
		for key, more := c.member(); more; key, more = c.member() {
			switch string(key) {
			case "apiVersion":
				c.once(&seen, 0)
				o.APIVersion = c.ascii()
			case "kind":
				c.once(&seen, 1)
				o.Kind = c.ascii()
			case "name":
				c.once(&seen, 2)
				o.Name = c.ascii()
			case "uid":
				c.once(&seen, 3)
				o.UID = types.UID(c.ascii())
			case "controller":
				c.once(&seen, 4)
				o.Controller = new(c.flag())
			case "blockOwnerDeletion":
				c.once(&seen, 5)
				o.BlockOwnerDeletion = new(c.flag())
			default:
				c.skip()
			}
		}
		out = append(out, o)
	}
	return out
}
