// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/schema"
	"github.com/memfit/memfit/config/crd"
)

// The schemas are parsed on first use, because each takes a tenth of a second.
var (
	memoryProfiles        = sync.OnceValues(func() (*schema.Schema, error) { return schema.New(crd.MemoryProfiles) })
	clusterMemoryProfiles = sync.OnceValues(func() (*schema.Schema, error) {
		return schema.New(crd.ClusterMemoryProfiles)
	})
)

// intoProfile decodes a profile into out and sets defaults, as the API server does for kubectl apply --validate=strict.
// meta is the metadata of out.
func intoProfile(n *yaml.Node, out any, meta *metav1.ObjectMeta, parsed func() (*schema.Schema, error)) error {
	if version := text(n, "apiVersion"); version != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("apiVersion: unsupported value %.64q: use %q", version, v1alpha1.GroupVersion)
	}
	data, err := appendJSON(nil, n)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return err
	}
	s, err := parsed()
	if err != nil {
		return err
	}
	s.Default(object)
	errs := s.Check(object)
	unknown, err := kjson.UnmarshalStrict(data, out)
	switch {
	case err != nil && (len(errs) == 0 || badQuantity(n) != nil):
		return explained(n, err)
	case err != nil:
		return errs.ToAggregate()
	}
	for _, err := range append(errs, validateMeta(*meta, out)...) {
		unknown = append(unknown, err)
	}
	if len(unknown) > 0 {
		return utilerrors.NewAggregate(unknown)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, out)
}

// validateMeta validates metadata. A MemoryProfile may omit its namespace, which the command line may have; the
// namespace of a ClusterMemoryProfile is ignored.
func validateMeta(meta metav1.ObjectMeta, of any) field.ErrorList {
	if _, namespaced := of.(*v1alpha1.MemoryProfile); !namespaced || meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	return validation.ValidateObjectMeta(&meta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}
