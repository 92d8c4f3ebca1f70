// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"strings"
)

// Image is an image that people start programs of a runtime with.
type Image struct {
	// Name is the last part of its repository, or the last parts: "node", "dotnet/aspnet". Mirrors have others before it.
	Name string
	// Tagged: its tag begins with the version of the runtime. The tag of others is a version of their own.
	Tagged bool
}

// ByImage finds the runtime that an image was built for by its name, and the version in its tag; nil if the name does
// not show it. It is a suggestion: an image may hold anything.
func ByImage(image string) (r *Runtime, version string) {
	repository, tag := SplitImage(image)
	for _, row := range table {
		for _, known := range row.Images {
			if repository == known.Name || strings.HasSuffix(repository, "/"+known.Name) {
				if known.Tagged {
					version = leadingVersion(tag)
				}
				return row, version
			}
		}
	}
	return nil, ""
}

// SplitImage takes an image's name apart; a port of the registry is not a tag, and a digest is dropped.
func SplitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, ""
}

// leadingVersion is the digits and dots that a tag begins with: "20.18" of "20.18-alpine".
func leadingVersion(tag string) string {
	end := 0
	for end < len(tag) && (tag[end] == '.' || tag[end] >= '0' && tag[end] <= '9') {
		end++
	}
	if version := strings.Trim(tag[:end], "."); ParseVersion(version).Known() {
		return version
	}
	return ""
}

// ByVariable finds the runtime that alone reads a variable: NODE_OPTIONS, GOMEMLIMIT. nil where none or several do.
func ByVariable(name string) (only *Runtime) {
	for _, row := range table {
		if row == auto || !slices.ContainsFunc(row.Knobs, func(k Knob) bool { return k.Env == name }) {
			continue
		}
		if only != nil {
			return nil
		}
		only = row
	}
	return only
}
