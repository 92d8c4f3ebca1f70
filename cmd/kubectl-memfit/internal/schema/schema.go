// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema validates objects against their CustomResourceDefinition, as the API server does on create.
package schema

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Schema is the schema of one kind, with its CEL rules.
type Schema struct {
	structure *structural.Structural
	schema    validation.SchemaValidator
	rules     *cel.Validator
}

// New parses a CustomResourceDefinition in YAML and returns the schema of its first version.
func New(definition []byte) (*Schema, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		return nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
	}
	var in apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &in, nil,
	); err != nil {
		return nil, fmt.Errorf("converting the schema of %s: %w", crd.Name, err)
	}
	s := &Schema{}
	var err error
	if s.structure, err = structural.NewStructural(&in); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", crd.Name, err)
	}
	if s.schema, _, err = validation.NewSchemaValidator(&in); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", crd.Name, err)
	}
	s.rules = cel.NewValidator(s.structure, true, celconfig.PerCallLimit)
	return s, nil
}

// Default sets the defaults of an object, in place.
func (s *Schema) Default(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structure)
	defaulting.Default(object, s.structure)
}

// Check returns why the API server would refuse the object. It evaluates CEL rules only if the schema is satisfied.
func (s *Schema) Check(object map[string]any) field.ErrorList {
	errs := append(validation.ValidateCustomResource(nil, object, s.schema),
		listtype.ValidateListSetsAndMaps(nil, s.structure, object)...)
	if len(errs) > 0 {
		return errs
	}
	errs, _ = s.rules.Validate(context.Background(), nil, s.structure, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}
