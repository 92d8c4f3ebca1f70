// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
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
// a pod that nobody governs.
func Read(body []byte) (r Review, ok bool) {
	c := cursor{text: body}
	version, kind := false, false
	c.object()
	for {
		key, more := c.member()
		if !more {
			return Review{}, false
		}
		switch string(key) {
		case "apiVersion":
			version = string(c.raw()) == `"admission.k8s.io/v1"`
		case "kind":
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

// request reads what comes before the object, and of the object what comes before the spec.
func (r *Review) request(c *cursor) {
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "uid":
			r.UID = types.UID(c.ascii())
		case "namespace":
			r.Namespace = c.ascii()
		case "dryRun": // after the object, where Rest finds it
			c.odd = true
		case "object":
			r.object(c)
			return
		default:
			c.skip()
		}
	}
	c.odd = true // no object
}

func (r *Review) object(c *cursor) {
	known := false
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "metadata":
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
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "name":
			into.Name = c.ascii()
		case "generateName":
			into.GenerateName = c.ascii()
		case "namespace":
			into.Namespace = c.ascii()
		case "uid":
			into.UID = types.UID(c.ascii())
		case "labels":
			into.Labels = pairs(c)
		case "annotations":
			into.Annotations = pairs(c)
		case "ownerReferences":
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
		out[string(key)] = c.words()
	}
	return out
}

func owners(c *cursor) []metav1.OwnerReference {
	if c.null() {
		return nil
	}
	out := make([]metav1.OwnerReference, 0, 1)
	c.array()
	for c.item() {
		var o metav1.OwnerReference
		c.object()
		for key, more := c.member(); more; key, more = c.member() {
			switch string(key) {
			case "apiVersion":
				o.APIVersion = c.ascii()
			case "kind":
				o.Kind = c.ascii()
			case "name":
				o.Name = c.ascii()
			case "uid":
				o.UID = types.UID(c.ascii())
			case "controller":
				o.Controller = new(c.flag())
			case "blockOwnerDeletion":
				o.BlockOwnerDeletion = new(c.flag())
			default:
				c.skip()
			}
		}
		out = append(out, o)
	}
	return out
}
