// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"strings"
)

// Image is a common image for programs of a runtime.
type Image struct {
	// Name is the end of the image's repository: "node", "dotnet/aspnet". Mirrors have other prefixes.
	Name   string
	Tagged bool // the image's tag begins with the version of the runtime
}

// ByImage returns the probable runtime of an image by its name, and the version in its tag; nil if unknown.
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

// SplitImage splits an image's name into repository and tag. It drops a digest.
func SplitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, ""
}

// leadingVersion returns the leading digits and dots of a tag: "20.18" of "20.18-alpine".
func leadingVersion(tag string) string {
	rest := strings.TrimLeft(tag, "0123456789.")
	version := strings.Trim(strings.TrimSuffix(tag, rest), ".")
	if ParseVersion(version).Known() {
		return version
	}
	return ""
}

// ByVariable returns the only runtime that reads a variable, such as NODE_OPTIONS; nil if none or several do.
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
