// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const observeTree = "config/overlays/observe-only"

// TestObserveOnly checks that the overlay cannot change new or running pods and does not need cert-manager, and that
// the manager accepts its flags.
func TestObserveOnly(t *testing.T) {
	objects := build(t, observeTree)
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") ||
			strings.Contains(object.GetAPIVersion(), "cert-manager.io") || object.GetName() == "memfit-webhook-service" {
			t.Errorf("unexpected %s %s", object.GetKind(), object.GetName())
		}
	}
	for _, role := range all[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				pods := resource == "pods" || strings.HasPrefix(resource, "pods/")
				reads := !slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" })
				if pods && !reads {
					t.Errorf("ClusterRole %s may %v %s", role.Name, rule.Verbs, resource)
				}
			}
		}
	}
	d := one[appsv1.Deployment](t, objects, "Deployment", manager)
	c := managerOf(t, &d.Spec.Template.Spec)
	if len(c.VolumeMounts) != 0 || len(d.Spec.Template.Spec.Volumes) != 0 {
		t.Errorf("the manager mounts %v of %v", c.VolumeMounts, d.Spec.Template.Spec.Volumes)
	}
	off := false
	for _, e := range c.Env {
		off = off || e.Name == "ENABLE_WEBHOOKS" && e.Value == "false"
	}
	if !off {
		t.Errorf("the webhook is not disabled: %v", c.Env)
	}
	args := append(slices.Clone(c.Args), "-h")
	if out, err := exec.Command(managerBinary(t), args...).CombinedOutput(); err != nil {
		t.Errorf("manager %v: %v\n%s", args, err, out)
	}
}
