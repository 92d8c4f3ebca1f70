// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/memfit/memfit/api/v1alpha1"
)

// roles are the ClusterRoles that memfit installs for readers; each is aggregated to "view".
var roles = map[string]string{
	recommendations:         "memfit-memoryrecommendation-viewer-role",
	"memoryprofiles":        "memfit-memoryprofile-viewer-role",
	"clustermemoryprofiles": "memfit-clustermemoryprofile-viewer-role",
	snapshots:               "memfit-memorysnapshot-viewer-role",
	checkpoints:             "memfit-memoryrecommendation-viewer-role",
}

// helpful adds the fix to the error of a list.
func helpful(err error, resource, namespace string) error {
	switch {
	case apierrors.IsNotFound(err): // a list of a served kind always exists, so the kind is missing
		return fmt.Errorf("this cluster has no %s.%s, so memfit is not installed: "+
			"kubectl apply --server-side -f dist/install.yaml (docs/guide/install.md), or name another cluster with "+
			"--context: %w",
			resource, v1alpha1.Group, err)
	case apierrors.IsForbidden(err) && (namespace == "" || resource == "clustermemoryprofiles"):
		return fmt.Errorf("you may not list %s.%s in all namespaces: name one with -n, or ask for a ClusterRoleBinding to "+
			"view or to %s: %w",
			resource, v1alpha1.Group, roles[resource], err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not list %s.%s in namespace %s: ask for the right, "+
			"kubectl -n %s create rolebinding memfit-view --clusterrole=%s --user=YOU: %w",
			resource, v1alpha1.Group, namespace, namespace, roles[resource], err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("unauthorized: the credentials of the kubeconfig may have expired: %w", err)
	}
	return fmt.Errorf("listing %s.%s: %w", resource, v1alpha1.Group, err)
}
