// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	"sigs.k8s.io/yaml"
)

// known are warnings that stay: memfit has no icon, and there are no examples of kinds that no one writes by hand.
var known = []string{
	"csv.Spec.Icon not specified",
	"Kind=MemoryCheckpoint: provided API should have an example annotation",
	"Kind=MemoryRecommendation: provided API should have an example annotation",
	"Kind=MemorySnapshot: provided API should have an example annotation",
}

// TestTheBundleIsValid: what the Operator Framework says of the bundle, with what OperatorHub asks for on top.
func TestTheBundleIsValid(t *testing.T) {
	dir := bundle(t)
	left := known
	for _, complaint := range complaints(t, dir) {
		at := slices.IndexFunc(left, func(one string) bool { return strings.Contains(complaint, one) })
		if at < 0 {
			t.Error(complaint)
			continue
		}
		left = slices.Delete(slices.Clone(left), at, at+1)
	}
	if len(left) > 0 {
		t.Errorf("no validator says so any more: %q", left)
	}

	// The validators look at this bundle: without the file of a CRD that it owns, they say so.
	crd := filepath.Join(dir, "manifests", "memoryprofiles.memfit.dev_customresourcedefinition.yaml")
	if err := os.Remove(crd); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(complaints(t, dir), "\n"); !strings.Contains(got, `Kind=MemoryProfile" not found`) {
		t.Errorf("nobody misses a CRD that the bundle owns:\n%s", got)
	}
}

// TestBundleDockerfile: the image's labels are those of metadata/annotations.yaml, and what it copies is there.
func TestBundleDockerfile(t *testing.T) {
	dir := bundle(t)
	text, err := os.ReadFile(filepath.Join(dir, "bundle.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	annotations, err := os.ReadFile(filepath.Join(dir, "metadata", "annotations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(annotations, &want); err != nil {
		t.Fatal(err)
	}
	labels, copies := map[string]string{}, 0
	for line := range strings.Lines(string(text)) {
		switch instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " "); instruction {
		case "LABEL":
			key, value, _ := strings.Cut(rest, "=")
			labels[key] = value
		case "COPY":
			copies++
			if from := strings.Fields(rest)[0]; !isFolder(filepath.Join(dir, from)) {
				t.Errorf("%s: there is no such folder in the bundle", strings.TrimSpace(line))
			}
		}
	}
	if copies != 2 || len(labels) != len(want.Annotations) {
		t.Errorf("%d folders and %d labels, want 2 and %d", copies, len(labels), len(want.Annotations))
	}
	for key, value := range want.Annotations {
		if labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, labels[key], value)
		}
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// bundle writes it as hack/release.sh does.
func bundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	kustomize := exec.Command("go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", "config/default")
	kustomize.Dir = "../.."
	built, err := kustomize.Output()
	if err != nil {
		t.Fatal(err)
	}
	install := filepath.Join(dir, "install.yaml")
	if err := os.WriteFile(install, built, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "bundle")
	release := exec.Command("go", "run", "./hack/release", "bundle", "-version", "9.8.7", "-manifests", install, "-o", out)
	release.Dir = "../.."
	if said, err := release.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// complaints are errors and warnings of the validators.
func complaints(t *testing.T, dir string) (all []string) {
	t.Helper()
	read, err := manifests.GetBundleFromDir(filepath.Join(dir, "manifests"))
	if err != nil {
		return []string{err.Error()}
	}
	objects := read.ObjectsToValidate()
	for _, o := range read.Objects {
		objects = append(objects, o)
	}
	validators := append(validation.DefaultBundleValidators, validation.OperatorHubValidator, validation.ObjectValidator)
	for _, result := range validators.Validate(objects...) {
		for _, one := range append(append([]errors.Error{}, result.Errors...), result.Warnings...) {
			all = append(all, result.Name+": "+one.Error())
		}
	}
	return all
}
