// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestBinaryNamesWhatGoVersionMNames builds the lab with the flags of the manager and compares with `go version -m`.
func TestBinaryNamesWhatGoVersionMNames(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "lab")
	run(t, "go", "build", "-C", "../..", "-trimpath", "-buildvcs=false", "-o", binary, ".")
	alone, err := Binary(binary, "v1")
	if err != nil {
		t.Fatal(err)
	}
	want := modules(run(t, "go", "version", "-m", binary))
	if len(want) < 3 {
		t.Fatalf("go version -m names only %v", want)
	}
	if got := libraries(alone); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := alone.Metadata.Component.PackageURL; got != "pkg:golang/github.com/memfit/memfit/hack/lab@v1" {
		t.Errorf("the program has the package URL %s", got)
	}
}

// TestEqualFilesGiveEqualDocuments: a document has no time, serial number or path of its creation.
func TestEqualFilesGiveEqualDocuments(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i := range texts {
		copied := filepath.Join(t.TempDir(), "program")
		content, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, content, 0o700); err != nil {
			t.Fatal(err)
		}
		bom, err := Binary(copied, "v1")
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := Write(&text, bom); err != nil {
			t.Fatal(err)
		}
		texts[i] = text.String()
	}
	if texts[0] != texts[1] {
		t.Error("two documents for equal files differ")
	}
	for _, word := range []string{`"timestamp"`, `"serialNumber"`, os.TempDir()} {
		if strings.Contains(texts[0], word) {
			t.Errorf("the document contains %s", word)
		}
	}
}

func TestBinaryRefusesOtherFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Binary(file, "v1"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// modules parses the output of go version -m: "FILE: go1.26.8", then lines like "dep PATH VERSION SUM".
func modules(printed string) []string {
	found := map[string]bool{}
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && strings.HasPrefix(fields[1], "go1."):
			found["stdlib@"+strings.TrimPrefix(fields[1], "go")] = true
		case len(fields) >= 3 && fields[0] == "dep":
			found[fields[1]+"@"+fields[2]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func libraries(bom *cdx.BOM) []string {
	var found []string
	for _, c := range *bom.Components {
		if c.Type == cdx.ComponentTypeLibrary {
			found = append(found, c.Name+"@"+c.Version)
		}
	}
	slices.Sort(found)
	return found
}
