// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestAMissingRightNamesARoleThatHasIt: the role that a message names exists, and may read what could not be read.
func TestAMissingRightNamesARoleThatHasIt(t *testing.T) {
	for _, resource := range []string{recommendations, "memoryprofiles", "clustermemoryprofiles", snapshots, checkpoints} {
		forbidden := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource(resource).GroupResource(), "", nil)
		text := helpful(forbidden, resource, "shop").Error()
		role := regexp.MustCompile(`memfit-([a-z]+)-viewer-role`).FindStringSubmatch(text)
		if role == nil {
			t.Errorf("%s: no role in %q", resource, text)
			continue
		}
		rules, err := os.ReadFile("../../../../config/rbac/" + role[1] + "_viewer_role.yaml")
		if err != nil || !strings.Contains(string(rules), resource) {
			t.Errorf("%s: %v: role %s does not have it:\n%s", resource, err, role[0], rules)
		}
	}
}
