// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/boundedjson"
)

// review is what memfit reads of an AdmissionReview. The parts of the pod are decoded when they are needed: most pods
// are not governed, which their metadata decides.
type review struct {
	kind, apiVersion string
	uid              types.UID
	resource         string // of the object, "pods"
	namespace        string
	dryRun           bool
	metadata, spec   []byte // of the object, as the API server sent them; nil: absent
}

// readReview reads a review in one pass. What comes before an error is in the review, for a request of which only the
// beginning is present.
func readReview(body []byte) (review, error) {
	s := scanner{body, jsontext.NewDecoder(
		bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	)}
	var r review
	err := s.object(func(name string) error {
		switch name {
		case "kind":
			return s.text(&r.kind)
		case "apiVersion":
			return s.text(&r.apiVersion)
		case "request":
			return s.object(func(name string) error { return r.request(s, name) })
		}
		return s.tokens.SkipValue()
	})
	if err != nil {
		return r, fmt.Errorf("reading the AdmissionReview: %w", err)
	}
	if _, err := s.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return r, errors.New("reading the AdmissionReview: there is text behind it")
	}
	if r.kind != "AdmissionReview" || r.apiVersion != admissionv1.SchemeGroupVersion.String() {
		return r, fmt.Errorf(
			"the request is %.60q of %.60q, and must be an AdmissionReview of %s", r.kind, r.apiVersion,
			admissionv1.SchemeGroupVersion,
		)
	}
	return r, nil
}

// request reads one member of the request.
func (r *review) request(s scanner, name string) error {
	switch name {
	case "uid":
		return s.text((*string)(&r.uid))
	case "resource":
		return s.object(func(name string) error {
			if name == "resource" {
				return s.text(&r.resource)
			}
			return s.tokens.SkipValue()
		})
	case "namespace":
		return s.text(&r.namespace)
	case "dryRun":
		return s.flag(&r.dryRun)
	case "object":
		return s.object(func(name string) error { return r.part(s, name) })
	}
	return s.tokens.SkipValue()
}

// part reads one member of an object.
func (r *review) part(s scanner, name string) error {
	switch name {
	case "metadata":
		return s.raw(&r.metadata)
	case "spec":
		return s.raw(&r.spec)
	}
	return s.tokens.SkipValue()
}

// scanner goes once over a text. null leaves a value as it is.
type scanner struct {
	all    []byte
	tokens *jsontext.Decoder
}

// object calls member for each member of the object at the cursor, with the cursor at its value.
func (s scanner) object(member func(name string) error) error {
	token, err := s.tokens.ReadToken()
	switch {
	case err != nil:
		return err
	case token.Kind() == jsontext.KindNull:
		return nil
	case token.Kind() != jsontext.KindBeginObject:
		return s.not("an object")
	}
	for s.tokens.PeekKind() == jsontext.KindString {
		name, err := s.tokens.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err = s.tokens.ReadToken()
	return err
}

func (s scanner) text(into *string) error {
	token, err := s.tokens.ReadToken()
	switch {
	case err != nil:
		return err
	case token.Kind() == jsontext.KindString:
		*into = token.String()
	case token.Kind() != jsontext.KindNull:
		return s.not("a string")
	}
	return nil
}

func (s scanner) flag(into *bool) error {
	token, err := s.tokens.ReadToken()
	switch {
	case err != nil:
		return err
	case token.Kind() == jsontext.KindTrue, token.Kind() == jsontext.KindFalse:
		*into = token.Bool()
	case token.Kind() != jsontext.KindNull:
		return s.not("true or false")
	}
	return nil
}

// raw is the text of a value, which is part of the whole text.
func (s scanner) raw(into *[]byte) error {
	value, err := s.tokens.ReadValue()
	if err != nil {
		return err
	}
	end := int(s.tokens.InputOffset())
	*into = s.all[end-len(value) : end]
	return nil
}

func (s scanner) not(what string) error {
	return fmt.Errorf("%s is not %s", s.tokens.StackPointer(), what)
}

// meta decodes the metadata of the pod.
func (r *review) meta() (*metav1.ObjectMeta, error) {
	if r.metadata == nil {
		return nil, errors.New("decoding the pod's metadata: the request has none")
	}
	var sent struct {
		metav1.ObjectMeta `json:",inline"`

		ManagedFields unread `json:"managedFields"` // the largest part of it
	}
	if err := boundedjson.Decode(r.metadata, "metadata", &sent); err != nil {
		return nil, fmt.Errorf("decoding the pod's metadata: %w", err)
	}
	sent.Namespace = r.namespace
	return &sent.ObjectMeta, nil
}

// unread is a value that nobody needs.
type unread struct{}

// UnmarshalJSON reads nothing.
func (unread) UnmarshalJSON([]byte) error { return nil }

// sentPod is a pod with what its Go type cannot express of it as it was sent.
type sentPod struct {
	*corev1.Pod

	// initContainers and containers report of each container whether it has the field resources: an absent one must be
	// added before something is added to it.
	initContainers, containers []bool
}

// sentSpec and sentContainer hide the fields of the same names of what they embed.
type sentSpec struct {
	corev1.PodSpec `json:",inline"`

	InitContainers []sentContainer `json:"initContainers"`
	Containers     []sentContainer `json:"containers"`
}

type sentContainer struct {
	corev1.Container `json:",inline"`

	Resources *corev1.ResourceRequirements `json:"resources"`
}

// pod decodes the rest of a pod whose metadata is known.
func (r *review) pod(meta *metav1.ObjectMeta) (sentPod, error) {
	p := sentPod{Pod: &corev1.Pod{ObjectMeta: *meta}}
	if r.spec == nil {
		return p, nil
	}
	var spec sentSpec
	if err := boundedjson.Decode(r.spec, "spec", &spec); err != nil {
		return sentPod{}, fmt.Errorf("decoding the pod: %w", err)
	}
	p.Spec = spec.PodSpec
	p.Spec.InitContainers, p.initContainers = containersOf(spec.InitContainers)
	p.Spec.Containers, p.containers = containersOf(spec.Containers)
	return p, nil
}

func containersOf(sent []sentContainer) (containers []corev1.Container, resources []bool) {
	containers, resources = make([]corev1.Container, len(sent)), make([]bool, len(sent))
	for i := range sent {
		containers[i] = sent[i].Container
		if have := sent[i].Resources; have != nil {
			containers[i].Resources, resources[i] = *have, true
		}
	}
	return containers, resources
}
