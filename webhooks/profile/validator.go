// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile is the validating webhook for profiles. It reports mistakes that the API schema does not detect.
package profile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/profile"
)

// +kubebuilder:webhook:path=/validate-memfit-dev-v1alpha1-memoryprofile,mutating=false,failurePolicy=ignore,sideEffects=None,groups=memfit.dev,resources=memoryprofiles,verbs=create;update,versions=v1alpha1,name=vmemoryprofile.memfit.dev,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:webhook:path=/validate-memfit-dev-v1alpha1-clustermemoryprofile,mutating=false,failurePolicy=ignore,sideEffects=None,groups=memfit.dev,resources=clustermemoryprofiles,verbs=create;update,versions=v1alpha1,name=vclustermemoryprofile.memfit.dev,admissionReviewVersions=v1,timeoutSeconds=5

// SetupValidators registers the validators of both kinds of profile.
func SetupValidators(mgr ctrl.Manager, known IndexSource) {
	server := mgr.GetWebhookServer()
	server.Register(profilePath, &admission.Webhook{Handler: validator{known, profile.KindNamespaced}})
	server.Register(clusterProfilePath, &admission.Webhook{Handler: validator{known, profile.KindCluster}})
}

const ( // the paths in the markers above
	profilePath        = "/validate-memfit-dev-v1alpha1-memoryprofile"
	clusterProfilePath = "/validate-memfit-dev-v1alpha1-clustermemoryprofile"
)

// IndexSource has the index of the profiles that this replica of memfit applies.
type IndexSource interface{ Profiles() *profile.Index }

// validator validates new and updated profiles of one kind.
type validator struct {
	known IndexSource
	kind  string
}

// Handle validates a profile. It refuses objects that exceed the limits of [boundedjson.Decode], because any client
// that reaches the port can send one.
func (v validator) Handle(_ context.Context, req admission.Request) admission.Response {
	var p, old v1alpha1.ClusterMemoryProfile // a MemoryProfile has the same fields except namespaceSelector
	before := &old.Spec.MemoryProfileSpec
	if err := boundedjson.Decode(req.Object.Raw, "", &p); err != nil {
		return admission.Denied(err.Error())
	}
	if len(req.OldObject.Raw) == 0 {
		before = nil
	} else if err := boundedjson.Decode(req.OldObject.Raw, "", &old); err != nil {
		return admission.Denied(err.Error())
	}
	warnings, errs := v.validate(before, &p)
	if len(errs) == 0 {
		return admission.Allowed("").WithWarnings(warnings...)
	}
	refusal := admission.Denied("")
	refusal.Result = &apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.Group, Kind: v.kind}, p.Name, errs).ErrStatus
	return refusal.WithWarnings(warnings...)
}

// everything reports whether a selector is set and matches every object.
func everything(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// validate returns errors for contradictions that the schema and its CEL rules allow. Contradictions with inherited
// settings are warnings, because the profile with these settings may be created or changed later. old is nil for a new
// profile.
func (v validator) validate(
	old *v1alpha1.MemoryProfileSpec, p *v1alpha1.ClusterMemoryProfile,
) (warnings []string, errs field.ErrorList) {
	spec, root, index := &p.Spec.MemoryProfileSpec, field.NewPath("spec"), v.known.Profiles()
	n := profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: v.kind, Name: p.Name}, Namespace: p.Namespace, Spec: spec,
	}
	if v.kind == profile.KindCluster {
		n.NamespaceSelector = p.Spec.NamespaceSelector
		if everything(spec.Selector) && (p.Spec.NamespaceSelector == nil || everything(p.Spec.NamespaceSelector)) {
			warnings = append(warnings,
				"memfit: spec.selector is empty, so it selects every pod of the cluster that no MemoryProfile selects")
		}
	}
	errs = n.Validate()
	if other := index.Defaults(n.Namespace); n.HoldsDefaults() && other != nil && other.Ref.Name != p.Name &&
		(old == nil || old.Role != v1alpha1.RoleDefaults) { // a profile that already has the role may be edited
		errs = append(errs, field.Forbidden(root.Child("role"), fmt.Sprintf("%s already has role: Defaults, and a "+
			"namespace, or the cluster, can have only one such profile: set the values in that profile", other)))
	}
	if len(errs) == 0 {
		for _, text := range index.Inheriting(n).Clashes() {
			warnings = append(warnings, "memfit: "+text)
		}
	}
	return warnings, errs
}
