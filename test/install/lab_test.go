// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

const labTree = "config/overlays/lab"

// TestOnlyALabCompressesEvidence checks that no tree compresses evidence, and that only the lab's namespace has the
// label that allows it. The component config/compress-evidence also sets the label, for labs without cert-manager.
func TestOnlyALabCompressesEvidence(t *testing.T) {
	for _, tree := range trees {
		labelled, compresses := labOf(t, build(t, tree))
		if labelled != (tree == labTree) {
			t.Errorf("%s: namespace labelled %s=true: %t", tree, v1alpha1.LabLabel, labelled)
		}
		if compresses != "" {
			t.Errorf("%s compresses evidence by %s", tree, compresses)
		}
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(top, "dist")
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		t.Fatal(err)
	}
	if overlay, err = os.MkdirTemp(overlay, "evidence."); err != nil { //nolint:usetesting // kustomize reads only there
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(overlay) })
	text := "resources: [../../config/default]\ncomponents: [../../config/compress-evidence]\n"
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := objectsOf(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if labelled, compresses := labOf(t, objects); !labelled || compresses != "144" {
		t.Errorf("config/compress-evidence: namespace labelled %t, evidence compressed by %q", labelled, compresses)
	}
}

// labOf returns whether memfit's namespace has the lab label, and the manager's compression factor; "" is none.
func labOf(t *testing.T, objects []built) (labelled bool, compresses string) {
	for _, ns := range all[corev1.Namespace](t, objects, "Namespace") {
		labelled = labelled || ns.Labels[v1alpha1.LabLabel] == "true"
	}
	for _, d := range all[appsv1.Deployment](t, objects, "Deployment") {
		env := d.Spec.Template.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "LAB_COMPRESS_EVIDENCE" })
		if i >= 0 {
			compresses = env[i].Value
		}
	}
	return labelled, compresses
}
