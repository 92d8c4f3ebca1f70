// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// What Artifact Hub shows of a version, in the form that it reads.
type (
	hubImage struct {
		Name      string   `json:"name"`
		Image     string   `json:"image"`
		Platforms []string `json:"platforms"`
	}
	hubCRD struct {
		Kind        string `json:"kind"`
		Version     string `json:"version"`
		Name        string `json:"name"`
		DisplayName string `json:"displayName"`
		Description string `json:"description"`
	}
	hubChange struct {
		Kind        string `json:"kind"`
		Description string `json:"description"`
	}
)

// annotated is Chart.yaml with what Artifact Hub shows of this version. Its annotations come last, so that more of them
// can follow.
func annotated(chart []byte, number, images string) ([]byte, error) {
	crds, err := describedCRDs()
	if err != nil {
		return nil, err
	}
	examples, err := exampleProfiles()
	if err != nil {
		return nil, err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	image := func(name string) hubImage {
		return hubImage{name, images + "/" + name + ":v" + number, []string{"linux/amd64", "linux/arm64"}}
	}
	out := bytes.NewBuffer(bytes.Clone(chart))
	for _, one := range []struct {
		key   string
		value any
	}{
		{"images", []hubImage{image("manager"), image("agent")}},
		{"crds", crds}, {"crdsExamples", examples}, {"changes", changes(string(changelog), number)},
	} {
		text, err := yaml.Marshal(one.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "  artifacthub.io/%s: |\n", one.key)
		for line := range strings.Lines(string(text)) {
			out.WriteString("    " + line)
		}
	}
	var written struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(out.Bytes(), &written); err != nil {
		return nil, fmt.Errorf("reading Chart.yaml with annotations: %w", err)
	}
	if written.Annotations["artifacthub.io/changes"] == "" {
		return nil, errors.New("annotations must be the last field of Chart.yaml")
	}
	return out.Bytes(), nil
}

func describedCRDs() ([]hubCRD, error) {
	files, err := filepath.Glob("config/crd/bases/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []hubCRD
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd struct {
			Metadata struct{ Name string }
			Spec     struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema struct{ Description string } }
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kind, latest := crd.Spec.Names.Kind, crd.Spec.Versions[len(crd.Spec.Versions)-1]
		out = append(out, hubCRD{
			kind, latest.Name, crd.Metadata.Name, kind, oneLine(latest.Schema.OpenAPIV3Schema.Description),
		})
	}
	return out, nil
}

// exampleProfiles are the profiles of config/samples, without the workloads beside them.
func exampleProfiles() (out []map[string]any, err error) {
	files, err := filepath.Glob("config/samples/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if version, _ := o["apiVersion"].(string); strings.HasPrefix(version, "memfit.dev/") {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// section begins what a version changed, or what one kind of changes is.
var section = regexp.MustCompile(`(?m)^(##|###) \[?([^\]\s]+)`)

// changes are the entries of this version in the changelog, or the unreleased ones while it has none of its own.
func changes(changelog, number string) []hubChange {
	if found := changesUnder(changelog, number); len(found) > 0 {
		return found
	}
	return changesUnder(changelog, "Unreleased")
}

func changesUnder(changelog, version string) (out []hubChange) {
	current, kind, entry := "", "", ""
	flush := func() {
		if current == version && kind != "" && entry != "" {
			out = append(out, hubChange{kind, oneLine(entry)})
		}
		entry = ""
	}
	for line := range strings.Lines(changelog) {
		switch m := section.FindStringSubmatch(line); {
		case m != nil && m[1] == "##":
			flush()
			current, kind = m[2], ""
		case m != nil:
			flush()
			kind = strings.ToLower(m[2])
		case strings.HasPrefix(line, "- "):
			flush()
			entry = line[2:]
		case strings.HasPrefix(line, "  "):
			entry += line
		default:
			flush()
		}
	}
	flush()
	return out
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
