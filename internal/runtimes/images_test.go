// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"strings"
	"testing"
)

func TestByImage(t *testing.T) {
	for image, want := range map[string]string{
		"node:20.18-alpine":                    "NodeJS 20.18",
		"registry.example:5000/mirror/node:22": "NodeJS 22",
		"registry.example:5000/node":           "NodeJS",
		"node@sha256:0123":                     "NodeJS",
		"node:lts":                             "NodeJS",
		"eclipse-temurin:17.0.15_6-jre":        "JVM 17.0.15",
		"tomcat:9-jdk17":                       "JVM", // 9 is Tomcat's version
		"registry.example/dotnet/aspnet:8.0":   "DotNet 8.0",
		"aspnet:8.0":                           "",
		"golang:1.26-bookworm":                 "Go 1.26",
		"shop/my-node:20":                      "",
		"node-exporter:1.8":                    "",
		"":                                     "",
		"python:" + strings.Repeat("9", 100):   "Python",
	} {
		r, version := ByImage(image)
		got := ""
		if r != nil {
			got = strings.TrimSpace(r.Name + " " + version)
		}
		if got != want {
			t.Errorf("%s suggests %q, want %q", image, got, want)
		}
	}
}

func TestImagesAreOneRuntimeOnly(t *testing.T) {
	for _, r := range All() {
		for _, image := range r.Images {
			if found, _ := ByImage("registry.example/" + image.Name + ":1"); found != r {
				t.Errorf("%s is named by %s, and found for %v", image.Name, r.Name, found)
			}
		}
	}
}

func TestByVariable(t *testing.T) {
	for name, want := range map[string]string{
		"NODE_OPTIONS": "NodeJS", "GOMEMLIMIT": "Go", "JAVA_TOOL_OPTIONS": "JVM", "MALLOC_ARENA_MAX": "", "PATH": "",
	} {
		got := ""
		if r := ByVariable(name); r != nil {
			got = r.Name
		}
		if got != want {
			t.Errorf("%s suggests %q, want %q", name, got, want)
		}
	}
}
