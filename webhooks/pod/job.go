// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/workloadkind"
)

// job returns the response for a new Job, and its result for the metrics.
func (h *Injector) job(
	ctx context.Context, req *review, kind workloadkind.Kind,
) (a *admissionv1.AdmissionResponse, result string) {
	a, err := h.sizeTemplate(ctx, req, kind)
	switch {
	case err != nil:
		return h.failOpen(ctx, req, "template", err), resultError
	case a == nil:
		return allowed(), resultUngoverned
	}
	return a, resultGoverned
}

// sizeTemplate sets memory in the template of a new suspended Job to what its pods will get, so that a queue controller
// such as Kueue reserves enough. It changes no Job that may be applied again: the next apply would fail, because the
// template of an existing Job is immutable before Kubernetes 1.36, or would undo the sizes. nil: no profile governs the
// Job, the Job is not suspended, or nothing is known about its pods.
func (h *Injector) sizeTemplate(
	ctx context.Context, req *review, kind workloadkind.Kind,
) (*admissionv1.AdmissionResponse, error) {
	job, err := req.meta()
	if err != nil {
		return nil, err
	}
	template, suspended, err := req.template()
	if err != nil || !suspended || template.Object.Metadata == nil {
		return nil, err
	}
	meta, err := template.meta()
	if err != nil {
		return nil, err
	}
	meta.OwnerReferences = []metav1.OwnerReference{ownerOfPods(job, kind)}
	resolved, err := h.resolve(ctx, meta)
	controlled := metav1.GetControllerOfNoCopy(job) != nil
	if err != nil || resolved.Profile == nil || resolved.Paused != "" ||
		!resolved.Profile.Spec.Sizing.Mode.SizesNewPods() ||
		resolved.Identity == nil && !controlled { // the Job is its own workload, and has not run yet
		return nil, err
	}
	pod, err := template.pod(meta)
	if err != nil {
		return nil, err
	}
	in, err := h.input(ctx, resolved, pod)
	if err != nil {
		return nil, err
	}
	in.SizesOnly = true
	sized, a := inject.MakePlan(in.Input).Patch(pod), allowed()
	switch {
	case len(sized) == 0:
		return a, nil
	case job.Name != "" && !controlled:
		return allowed(
			"the suspended Job was admitted unchanged, because a Job with metadata.name may be applied again; use " +
				"metadata.generateName to get the recommended sizes in its template",
		), nil
	}
	return a, patch(a, sized, "/"+strings.Join(kind.Template, "/"))
}

// ownerOfPods returns the controller that owns the Job or, without one, the Job itself, which may have no name or UID
// yet.
func ownerOfPods(job *metav1.ObjectMeta, kind workloadkind.Kind) metav1.OwnerReference {
	if above := metav1.GetControllerOfNoCopy(job); above != nil {
		return *above
	}
	return metav1.OwnerReference{
		APIVersion: kind.APIVersion(), Kind: kind.Name, Name: cmp.Or(job.Name, job.GenerateName+"new"), Controller: new(true),
	}
}

// template returns the template of a Job as a pod, and whether the Job is suspended.
func (r *review) template() (of review, suspended bool, err error) {
	var sent struct {
		Suspend  bool  `json:"suspend"`
		Template parts `json:"template"`
	}
	if r.Object.Spec != nil {
		if err := boundedjson.Parts(r.Object.Spec, &sent); err != nil {
			return review{}, false, fmt.Errorf("decoding the Job: %w", err)
		}
	}
	return review{UID: r.UID, Namespace: r.Namespace, DryRun: r.DryRun, Object: sent.Template}, sent.Suspend, nil
}
