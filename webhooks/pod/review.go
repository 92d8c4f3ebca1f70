// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/boundedjson"
)

// review has the fields that memfit reads of an AdmissionReview's request. The object's parts are decoded when needed:
// for most pods, metadata alone shows that no profile governs them.
type review struct {
	UID      types.UID `json:"uid"`
	Resource struct {
		Resource string `json:"resource"` // "pods"
	} `json:"resource"`
	Namespace string `json:"namespace"`
	DryRun    bool   `json:"dryRun"`
	Object    parts  `json:"object"`
}

// parts has the undecoded parts of an object; nil: absent.
type parts struct {
	Metadata jsontext.Value `json:"metadata"`
	Spec     jsontext.Value `json:"spec"`
}

// readReview reads a review. After an error, such as for an incomplete request, it returns the fields before the error.
func readReview(body []byte) (review, error) {
	var sent struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Request    review `json:"request"`
	}
	if err := boundedjson.Parts(body, &sent); err != nil {
		return sent.Request, fmt.Errorf("reading the AdmissionReview: %w", err)
	}
	if sent.Kind != "AdmissionReview" || sent.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return sent.Request, fmt.Errorf(
			"the request is a %.60q of %.60q, but must be an AdmissionReview of %s", sent.Kind, sent.APIVersion,
			admissionv1.SchemeGroupVersion,
		)
	}
	return sent.Request, nil
}

// meta decodes the metadata of the pod.
func (r *review) meta() (*metav1.ObjectMeta, error) {
	if r.Object.Metadata == nil {
		return nil, errors.New("decoding the pod's metadata: the request has none")
	}
	var sent struct {
		metav1.ObjectMeta `json:",inline"`

		ManagedFields unread `json:"managedFields"` // its largest part
	}
	if err := boundedjson.Decode(r.Object.Metadata, "metadata", &sent); err != nil {
		return nil, fmt.Errorf("decoding the pod's metadata: %w", err)
	}
	sent.Namespace = r.Namespace
	return &sent.ObjectMeta, nil
}

// unread skips a value.
type unread struct{}

// UnmarshalJSON skips the value.
func (unread) UnmarshalJSON([]byte) error { return nil }

// sentSpec and sentContainer override fields of the embedded types, so that absent resources decode as nil.
type sentSpec struct {
	corev1.PodSpec `json:",inline"`

	InitContainers []sentContainer `json:"initContainers"`
	Containers     []sentContainer `json:"containers"`
}

type sentContainer struct {
	corev1.Container `json:",inline"`

	Resources *corev1.ResourceRequirements `json:"resources"`
}

// pod decodes a pod's spec. Containers with a resources object have non-nil Limits, even if empty: a JSON patch must
// add a missing object, but must not replace an existing one, which may have members that its Go type lacks.
func (r *review) pod(meta *metav1.ObjectMeta) (*corev1.Pod, error) {
	p := &corev1.Pod{ObjectMeta: *meta}
	if r.Object.Spec == nil {
		return p, nil
	}
	var spec sentSpec
	if err := boundedjson.Decode(r.Object.Spec, "spec", &spec); err != nil {
		return nil, fmt.Errorf("decoding the pod: %w", err)
	}
	p.Spec = spec.PodSpec
	p.Spec.InitContainers, p.Spec.Containers = containersOf(spec.InitContainers), containersOf(spec.Containers)
	return p, nil
}

func containersOf(sent []sentContainer) []corev1.Container {
	containers := make([]corev1.Container, len(sent))
	for i := range sent {
		containers[i] = sent[i].Container
		if have := sent[i].Resources; have != nil {
			containers[i].Resources = *have
			if have.Limits == nil {
				containers[i].Resources.Limits = corev1.ResourceList{}
			}
		}
	}
	return containers
}
