// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"
)

// Request is what memfit needs of an AdmissionRequest.
type Request struct {
	UID       types.UID
	Namespace string
	DryRun    bool
	// Object is the pod as it was sent; a part of the bytes given to [Read].
	Object []byte
}

// Read finds the request in an AdmissionReview of version v1. ok is false when it is anything else, or unusual.
func Read(body []byte) (r Request, ok bool) {
	var version, kind, request []byte
	ok = members(body, func(key, value []byte) bool {
		switch string(key) {
		case "apiVersion":
			version = value
		case "kind":
			kind = value
		case "request":
			request = value
		}
		return true
	})
	if !ok || string(version) != `"admission.k8s.io/v1"` || string(kind) != `"AdmissionReview"` {
		return Request{}, false
	}
	usual := true
	ok = members(request, func(key, value []byte) bool {
		switch string(key) {
		case "uid":
			uid, plainly := plain(value)
			r.UID, usual = types.UID(uid), usual && plainly
		case "namespace":
			var plainly bool
			r.Namespace, plainly = plain(value)
			usual = usual && plainly
		case "dryRun":
			r.DryRun = string(value) == "true"
			usual = usual && (r.DryRun || string(value) == "false")
		case "object":
			r.Object = value
		}
		return true
	})
	return r, ok && usual && r.UID != "" && len(r.Object) > 0 && r.Object[0] == '{'
}

// Metadata decodes of an object's metadata what decides who governs it: names, labels, annotations and owners.
func Metadata(object []byte, into *metav1.ObjectMeta) (ok bool) {
	var metadata []byte
	if !members(object, func(key, value []byte) bool {
		if string(key) == "metadata" {
			metadata = value
			return false // it comes before spec, which is long
		}
		return true
	}) || metadata == nil {
		return false
	}
	usual := true
	ok = members(metadata, func(key, value []byte) bool {
		switch string(key) {
		case "name":
			into.Name, usual = plain(value)
		case "generateName":
			into.GenerateName, usual = plain(value)
		case "namespace":
			into.Namespace, usual = plain(value)
		case "uid":
			var uid string
			uid, usual = plain(value)
			into.UID = types.UID(uid)
		case "labels":
			into.Labels, usual = pairs(value)
		case "annotations":
			into.Annotations, usual = pairs(value)
		case "ownerReferences":
			into.OwnerReferences, usual = owners(value)
		}
		return usual
	})
	return ok && usual
}

// pairs is a map of strings. Values that need decoding get it.
func pairs(b []byte) (map[string]string, bool) {
	if string(b) == "null" {
		return nil, true
	}
	out, usual := make(map[string]string, 8), true
	ok := members(b, func(key, value []byte) bool {
		s, plainly := plain(value)
		if !plainly {
			plainly = decode(value, &s)
		}
		out[string(key)], usual = s, plainly
		return usual
	})
	return out, ok && usual
}

// owners are owner references; one that is written in an unusual way makes all of them go the usual way.
func owners(b []byte) (out []metav1.OwnerReference, ok bool) {
	plainly := items(b, func(item []byte) bool {
		var o metav1.OwnerReference
		usual := true
		ok := members(item, func(key, value []byte) bool {
			switch string(key) {
			case "apiVersion":
				o.APIVersion, usual = plain(value)
			case "kind":
				o.Kind, usual = plain(value)
			case "name":
				o.Name, usual = plain(value)
			case "uid":
				var uid string
				uid, usual = plain(value)
				o.UID = types.UID(uid)
			case "controller":
				o.Controller, usual = flag(value)
			case "blockOwnerDeletion":
				o.BlockOwnerDeletion, usual = flag(value)
			}
			return usual
		})
		out = append(out, o)
		return ok && usual
	})
	if plainly {
		return out, true
	}
	out = nil
	return out, decode(b, &out)
}

func flag(b []byte) (*bool, bool) {
	switch string(b) {
	case "true":
		return new(true), true
	case "false":
		return new(false), true
	}
	return nil, false
}

func decode(b []byte, into any) bool { return json.UnmarshalCaseSensitivePreserveInts(b, into) == nil }

// AppendAllowed appends an AdmissionReview that allows the pod, with a JSON patch unless it is empty, and with warnings.
// encodedPatch is the patch in base64, as AdmissionResponse wants it.
func AppendAllowed(out []byte, uid types.UID, encodedPatch string, warnings []string) []byte {
	out = append(out, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":`...)
	out = strconv.AppendQuote(out, string(uid)) // a UID that Read accepted is plain ASCII
	out = append(out, `,"allowed":true`...)
	if encodedPatch != "" {
		out = append(out, `,"patchType":"JSONPatch","patch":"`...)
		out = append(out, encodedPatch...)
		out = append(out, '"')
	}
	return appendWarnings(out, warnings)
}
