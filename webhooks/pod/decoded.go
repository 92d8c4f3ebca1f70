// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/internal/boundedjson"
)

// decoded is a pod in a request that the framework decoded.
type decoded admission.Request

func (d *decoded) Metadata() (*metav1.ObjectMeta, error) {
	var meta metav1.PartialObjectMetadata
	if err := boundedjson.Decode(d.Object.Raw, &meta); err != nil {
		return nil, fmt.Errorf("decoding the pod's metadata: %w", err)
	}
	meta.Namespace = d.Namespace
	return &meta.ObjectMeta, nil
}

func (d *decoded) Known(Inputs) (o *Outcome, dryRun bool) { return nil, false }

func (d *decoded) Remember(*Outcome) {}

func (d *decoded) Pod() (NewPod, error) {
	pod := &corev1.Pod{}
	if err := boundedjson.Decode(d.Object.Raw, pod); err != nil {
		return NewPod{}, fmt.Errorf("decoding the pod: %w", err)
	}
	pod.Namespace = d.Namespace
	outline, err := OutlineOf(d.Object.Raw)
	return NewPod{Pod: pod, Outline: outline, DryRun: d.DryRun != nil && *d.DryRun}, err
}

func (d *decoded) Scratch() []byte { return nil }

func (d *decoded) Logger(ctx context.Context) logr.Logger { return logf.FromContext(ctx) }
