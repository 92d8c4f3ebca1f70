// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// The schema of MemoryQuantity has no type, because a quantity is a string or an integer; without the marker the schema
// would be that of a struct. isQuantity takes minutes for an exponent of many digits. One rule refuses such exponents;
// all other rules, here and on fields, accept them without parsing.

// MemoryQuantity is an amount of memory in bytes, usually with a unit. Each field adds its range. Example: 512Mi.
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="!string(self).matches('[eE][-+]?[0-9]{3}')",message="an exponent has at most two digits: write it with a unit, for example 512Mi"
// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{3}') || isQuantity(string(self))",messageExpression="string(self) + ' is not a quantity: write for example 200Mi (mebibytes) or 200M (megabytes)'",message="not a quantity: write for example 200Mi (mebibytes) or 200M (megabytes)"
type MemoryQuantity struct {
	// Quantity also reads and writes the JSON form.
	resource.Quantity `json:"-"`
}

// NewMemoryQuantity returns q as a pointer, for optional fields.
func NewMemoryQuantity(q resource.Quantity) *MemoryQuantity { return &MemoryQuantity{q} }
