// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// heapShare is the share of the limit that the runtime gave its heap in replicas of the same image, in percent; 0:
// unknown. Flags come with the image as well, so another tag of it proves nothing.
func (t *target) heapShare(r *runtimes.Runtime) int32 {
	if f := t.found; f != nil && f.Image == t.container.Image && !moves(f.Image) && string(f.Type) == r.Name {
		return f.HeapPercent
	}
	return 0
}

// foundSpec returns what applies to a container by what replicas were found to run: everything for the same image, the
// runtime alone for another tag of the same repository, nothing for another repository. A moving tag, such as latest,
// may hold another version by now, and a setting for the wrong version can keep a process from starting.
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

// limitUnseen reports whether replicas of any tag of the image showed that the runtime does not see the memory limit.
// It is a property of the runtime and the kernel: which tag has a fixed runtime is unknown before one was inspected.
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

// fromImage returns why a variable that comes with the image is skipped; empty: it does not come with it.
func (t *target) fromImage(s setting) string {
	f := t.found
	if f == nil || !SameRepository(t.container.Image, f.Image) || !slices.Contains(f.ImageVariables, s.knob.Env) {
		return ""
	}
	return s.it() + " comes with the image, as running replicas show, and an entry in env would replace it" + s.setThere()
}

// moves reports whether an image's name is expected to mean another image tomorrow.
func moves(image string) bool {
	_, tag := runtimes.SplitImage(image)
	return !strings.Contains(image, "@") && (tag == "" || tag == "latest")
}

// identifyByFound completes an identity by what replicas were found to run: the runtime if it is neither declared nor
// named by the command, the version if the command names the same runtime. A declaration is never changed.
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
