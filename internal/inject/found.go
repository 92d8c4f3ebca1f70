// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// heapShare returns the heap's percentage of the limit in replicas of the same image, which may have flags; 0: unknown.
func (t *target) heapShare(r *runtimes.Runtime) int32 {
	if f := t.found; f != nil && f.Image == t.container.Image && !moves(f.Image) && string(f.Type) == r.Name {
		return f.HeapPercent
	}
	return 0
}

// foundSpec returns the detected runtime of replicas as far as it applies to a container: fully for the same image,
// without version for another tag of the repository, not at all for another repository. A moving tag, such as latest,
// may have another version by now, and a setting for the wrong version can prevent a start.
func (t *target) foundSpec() (spec v1alpha1.RuntimeSpec, known bool) {
	f, image := t.found, t.container.Image
	switch {
	case f == nil || f.Image == "" || image == "":
		return v1alpha1.RuntimeSpec{}, false
	case image == f.Image && !moves(image):
		return v1alpha1.RuntimeSpec{Type: f.Type, Version: f.Version, Variant: f.Variant, Libc: f.Libc}, true
	case SameRepository(image, f.Image):
		return v1alpha1.RuntimeSpec{Type: f.Type, Variant: f.Variant}, true
	}
	return v1alpha1.RuntimeSpec{}, false
}

// limitUnseen reports whether the runtime did not detect the memory limit in replicas of any tag of the image.
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

// fromImage returns the skip reason of a variable from the image; empty: not from the image.
func (t *target) fromImage(s setting) string {
	f := t.found
	if f == nil || !SameRepository(t.container.Image, f.Image) || !slices.Contains(f.ImageVariables, s.knob.Env) {
		return ""
	}
	return s.it() + " is set by the image, as running replicas show; an entry in env would replace it" + s.setThere()
}

// moves reports whether an image has a moving tag.
func moves(image string) bool {
	_, tag := runtimes.SplitImage(image)
	return !strings.Contains(image, "@") && (tag == "" || tag == "latest")
}

// identifyByFound completes an identity by the detected runtime of replicas: the runtime if neither a declaration nor
// the command has it, the version if the command has the same runtime. It never changes a declaration.
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
