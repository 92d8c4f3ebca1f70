// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile is the webhook for profiles: it tells their authors at once what the schema lets through and cannot
// be meant.
package profile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
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

// SetupValidators registers the validators of both kinds of profile. known are the effective profiles.
func SetupValidators(mgr ctrl.Manager, known Known) error {
	server, scheme := mgr.GetWebhookServer(), mgr.GetScheme()
	server.Register(profilePath, checked(scheme, profileValidator(known)))
	server.Register(clusterProfilePath, checked(scheme, clusterProfileValidator(known)))
	return nil
}

// The paths are those of the markers above.
const (
	profilePath        = "/validate-memfit-dev-v1alpha1-memoryprofile"
	clusterProfilePath = "/validate-memfit-dev-v1alpha1-clustermemoryprofile"
)

// checked validates objects within the bounds of [boundedjson.Check] and refuses others: every client that reaches the
// port may send one.
func checked[T runtime.Object](scheme *runtime.Scheme, v validator[T]) *admission.Webhook {
	hook := admission.WithValidator(scheme, v)
	validate := hook.Handler
	hook.Handler = admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw} {
			if len(raw) == 0 {
				continue
			}
			if err := boundedjson.Check(raw, *new(T)); err != nil {
				return admission.Denied(err.Error())
			}
		}
		return validate.Handle(ctx, req)
	})
	return hook
}

// Known are the effective profiles, as they are known to this replica.
type Known interface{ Profiles() *profile.Index }

// validator gives a verdict on a profile that is created, where old is nil, or updated. It implements
// admission.Validator.
type validator[T runtime.Object] func(old, p T) (admission.Warnings, error)

// ValidateCreate gives the verdict.
func (v validator[T]) ValidateCreate(_ context.Context, p T) (admission.Warnings, error) {
	return v(*new(T), p)
}

// ValidateUpdate gives the verdict.
func (v validator[T]) ValidateUpdate(_ context.Context, old, p T) (admission.Warnings, error) {
	return v(old, p)
}

// ValidateDelete allows it.
func (validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func profileValidator(known Known) validator[*v1alpha1.MemoryProfile] {
	return func(old, p *v1alpha1.MemoryProfile) (admission.Warnings, error) {
		var before *v1alpha1.MemoryProfileSpec
		if old != nil {
			before = &old.Spec
		}
		return verdict(known, profile.KindNamespaced, p, before, &p.Spec)
	}
}

func clusterProfileValidator(known Known) validator[*v1alpha1.ClusterMemoryProfile] {
	return func(old, p *v1alpha1.ClusterMemoryProfile) (admission.Warnings, error) {
		root := field.NewPath("spec", "namespaceSelector")
		if errs := metav1validation.ValidateLabelSelector(
			p.Spec.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, root,
		); len(errs) > 0 {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.Group, Kind: profile.KindCluster}, p.Name, errs)
		}
		var before *v1alpha1.MemoryProfileSpec
		if old != nil {
			before = &old.Spec.MemoryProfileSpec
		}
		warnings, err := verdict(known, profile.KindCluster, p, before, &p.Spec.MemoryProfileSpec)
		if everything(p.Spec.Selector) && (p.Spec.NamespaceSelector == nil || everything(p.Spec.NamespaceSelector)) {
			warnings = append(
				warnings, "memfit: spec.selector is empty and chooses every pod of every namespace that no MemoryProfile governs",
			)
		}
		return warnings, err
	}
}

// everything reports whether a selector is there and matches every object.
func everything(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// verdict refuses what cannot be meant. The schema and its CEL rules have passed already. old is nil where the profile
// is new. What a profile contradicts of what it inherits is refused to nobody, but warned of: in which order the two
// are applied is not for their authors to know.
func verdict(
	known Known, kind string, p metav1.Object, old, spec *v1alpha1.MemoryProfileSpec,
) (admission.Warnings, error) {
	name, root := p.GetName(), field.NewPath("spec")
	index := known.Profiles()
	n := profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: kind, Name: name}, Namespace: p.GetNamespace(), Spec: spec,
	}
	var errs field.ErrorList
	if spec.Selector != nil {
		errs = append(
			errs,
			metav1validation.ValidateLabelSelector(
				spec.Selector, metav1validation.LabelSelectorValidationOptions{}, root.Child("selector"),
			)...,
		)
	}
	if len(errs) == 0 { // an unreadable selector is among what Invalid says, with less detail
		for _, text := range profile.Invalid(spec) {
			errs = append(errs, field.Forbidden(root, text))
		}
	}
	if other := index.Defaults(n.Namespace); n.GivesDefaults() && other != nil && other.Ref.Name != name &&
		(old == nil || old.Role != v1alpha1.RoleDefaults) { // of two that are there already, both may be edited
		errs = append(errs, field.Forbidden(root.Child("role"), fmt.Sprintf(
			"%s has role: Defaults already, and there is one for each scope: put the values there", other,
		)))
	}
	for _, text := range (*profile.Index)(nil).Inheriting(n).Clashes() { // of what it says itself
		errs = append(errs, field.Forbidden(root, text))
	}
	errs = append(errs, validateTuning(root.Child("tuning"), &spec.Tuning)...)
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Tuning != nil {
			errs = append(errs, validateTuning(root.Child("containers").Key(c.Name).Child("tuning"), c.Tuning)...)
		}
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.Group, Kind: kind}, name, errs)
	}
	var warnings admission.Warnings
	for _, text := range index.Inheriting(n).Clashes() {
		warnings = append(warnings, "memfit: "+text)
	}
	return warnings, nil
}

// validateTuning refuses an interval that is not in the JVM's unit; the schema has the bounds.
func validateTuning(at *field.Path, t *v1alpha1.TuningSpec) field.ErrorList {
	d := t.TrimInterval
	if d == nil || d.Milliseconds()*1e6 == d.Nanoseconds() {
		return nil
	}
	return field.ErrorList{field.Invalid(
		at.Child("trimInterval"), d.Duration.String(),
		"must be whole milliseconds, which is the unit the JVM takes: for example 30s",
	)}
}
