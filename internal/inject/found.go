// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// heapShare returns the heap's percentage of the limit, as measured in replicas of the same image; 0: unknown.
func (t *target) heapShare(r *runtimes.Runtime) int32 {
	if f := t.found; f != nil && f.Image == t.container.Image && !hasMovingTag(f.Image) && string(f.Type) == r.Name {
		return f.HeapPercent
	}
	return 0
}

// foundSpec returns the runtime detected in replicas. For another tag of the image's repository, or a moving tag such
// as latest, it omits the version, because a setting for the wrong version can prevent a start. known is false for
// another repository.
func (t *target) foundSpec() (spec v1alpha1.RuntimeSpec, known bool) {
	f, image := t.found, t.container.Image
	switch {
	case f == nil || f.Image == "" || image == "":
		return v1alpha1.RuntimeSpec{}, false
	case image == f.Image && !hasMovingTag(image):
		return v1alpha1.RuntimeSpec{Type: f.Type, Version: f.Version, Variant: f.Variant, Libc: f.Libc}, true
	case SameRepository(image, f.Image):
		return v1alpha1.RuntimeSpec{Type: f.Type, Variant: f.Variant}, true
	}
	return v1alpha1.RuntimeSpec{}, false
}

// limitUnseen reports whether replicas of any tag of the image sized their heap by the node instead of the limit.
func (t *target) limitUnseen(r *runtimes.Runtime) bool {
	f := t.found
	return f != nil && f.NodeHeap != nil && string(f.Type) == r.Name && SameRepository(t.container.Image, f.Image)
}

// SameRepository reports whether two images are tags of one repository.
func SameRepository(a, b string) bool {
	of, _ := runtimes.SplitImage(a)
	other, _ := runtimes.SplitImage(b)
	return a != "" && of == other
}

// fromImage returns the skip reason if the image sets the variable; empty otherwise.
func (t *target) fromImage(s setting) string {
	f := t.found
	if f == nil || !SameRepository(t.container.Image, f.Image) || !slices.Contains(f.ImageVariables, s.knob.Env) {
		return ""
	}
	return s.subject() + " is set by the image, as running replicas show; an entry in env would replace it" +
		s.setThereText()
}

// hasMovingTag reports whether an image's tag is latest, or missing without a digest.
func hasMovingTag(image string) bool {
	_, tag := runtimes.SplitImage(image)
	return !strings.Contains(image, "@") && (tag == "" || tag == "latest")
}

// identifyByFound completes an identity with the runtime detected in replicas: an unknown runtime, or the version of
// the command's runtime. It never changes a declaration.
func identifyByFound(t target, id identity) identity {
	spec, known := t.foundSpec()
	if !known || id.source == v1alpha1.RuntimeDeclared {
		return id
	}
	r := runtimes.Lookup(string(spec.Type))
	if id.certain && id.runtime != r || r.Name == string(v1alpha1.RuntimeAuto) {
		return id
	}
	if spec.Libc == "" || t.policy.Runtime.Libc == v1alpha1.LibcMusl {
		spec.Libc = t.policy.Runtime.Libc
	}
	found := identity{
		runtime: r, certain: true, source: v1alpha1.RuntimeFromReplicas, spec: spec,
		evidence: "found in running replicas",
	}
	if t.found.Evidence != "" {
		found.evidence += ": " + t.found.Evidence
	}
	return found
}
