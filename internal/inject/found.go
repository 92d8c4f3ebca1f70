// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// Found is the runtime that agents found in the replicas of a container, and its image.
type Found struct {
	Image   string
	Runtime v1alpha1.RuntimeSpec
	// Evidence is half a sentence: "libjvm.so has version 17.0.15+6".
	Evidence string
	// ImageVariables are set by the image or its start script: an entry in env would replace them.
	ImageVariables []string
	// HeapPercent is the share of the limit that the runtime gave its heap, as its process shows; 0: not known.
	HeapPercent int32
	// LimitUnseen: a replica allowed itself a larger heap than its memory limit, without being set to it.
	LimitUnseen bool
}

// heapPercent is the share for a container that is created from an image; 0: not known. Flags come with the image as
// well, so another tag of it proves nothing.
func (f *Found) heapPercent(image string, r *runtimes.Runtime) int32 {
	if f == nil || f.Image != image || moves(image) || string(f.Runtime.Type) != r.Name {
		return 0
	}
	return f.HeapPercent
}

// FoundIn reads the status of a MemoryRecommendation; nil: nothing was found.
func FoundIn(f *v1alpha1.FoundRuntime) *Found {
	if f == nil || f.Type == "" || f.Type == v1alpha1.RuntimeAuto {
		return nil
	}
	return &Found{
		Image:    f.Image,
		Runtime:  v1alpha1.RuntimeSpec{Type: f.Type, Version: f.Version, Variant: f.Variant, Libc: f.Libc},
		Evidence: f.Evidence, ImageVariables: f.ImageVariables, HeapPercent: f.HeapPercent, LimitUnseen: f.NodeHeap != nil,
	}
}

// of returns what applies to a container that is created from an image: everything for the same image, the runtime
// alone for another tag of the same repository, nothing for another repository. A moving tag, such as latest, may hold
// another version by now, and a setting for the wrong version can keep a process from starting.
func (f *Found) of(image string) (spec v1alpha1.RuntimeSpec, known bool) {
	switch {
	case f == nil || f.Image == "" || image == "":
		return v1alpha1.RuntimeSpec{}, false
	case image == f.Image && !moves(image):
		return f.Runtime, true
	case repository(image) == repository(f.Image):
		return v1alpha1.RuntimeSpec{Type: f.Runtime.Type, Variant: f.Runtime.Variant}, true
	}
	return v1alpha1.RuntimeSpec{}, false
}

// blind reports whether replicas of any tag of the image showed that the runtime does not see the memory limit. It is a
// property of the runtime and the kernel: which tag has a fixed runtime is not known before one was inspected.
func (f *Found) blind(image string, r *runtimes.Runtime) bool {
	return f != nil && f.LimitUnseen && string(f.Runtime.Type) == r.Name && SameRepository(image, f.Image)
}

// SameRepository reports whether two images are tags of one repository.
func SameRepository(a, b string) bool { return a != "" && repository(a) == repository(b) }

// supplies returns why a variable that comes with the image is skipped; empty: it does not come with it.
func (f *Found) supplies(image string, s setting) string {
	if f == nil || repository(image) != repository(f.Image) || !slices.Contains(f.ImageVariables, s.knob.Env) {
		return ""
	}
	return s.it() + " comes with the image, as running replicas show, and an entry in env would replace it" + s.setThere()
}

// moves reports whether an image's name is expected to mean another image tomorrow.
func moves(image string) bool {
	name := image[strings.LastIndexByte(image, '/')+1:]
	if strings.Contains(name, "@") {
		return false
	}
	_, tag, tagged := strings.Cut(name, ":")
	return !tagged || tag == "latest"
}

// repository is an image's name without tag and digest; a port of the registry is not a tag.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// identifyByFound completes an identity by what replicas were found to run: the runtime if it is neither declared nor
// named by the command, the version if the command names the same runtime. A declaration is never changed.
func identifyByFound(t target, id identity) identity {
	spec, known := t.found.of(t.container.Image)
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
