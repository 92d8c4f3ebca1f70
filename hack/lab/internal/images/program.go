// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/memfit/memfit/hack/lab/internal/run"
)

// compile builds a static Go program of the lab's module into work and returns the file.
func (b *Builder) compile(ctx context.Context, folder, work string) (string, error) {
	out := filepath.Join(work, filepath.Base(folder))
	cmd := exec.CommandContext(
		ctx, "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-ldflags=-s -w", "-o", out,
		"./"+folder,
	)
	cmd.Dir = b.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	return out, run.Quiet(cmd)
}

// nodeArchs maps a GOARCH to npm's name of the processor.
var nodeArchs = map[string]string{"amd64": "x64", "arm64": "arm64"}

// nodeBinary downloads the official Node.js binary as an npm package: Debian 12 has only version 18. npm checks its
// integrity.
func nodeBinary(ctx context.Context, version, work string) (string, error) {
	arch, ok := nodeArchs[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("no Node.js binary for %s", runtime.GOARCH)
	}
	cmd := exec.CommandContext(
		ctx, "npm", "pack", "--ignore-scripts", "--loglevel=error", "--pack-destination="+work,
		fmt.Sprintf("node-linux-%s@%s", arch, version),
	)
	cmd.Dir = work // ignore .npmrc in the current folder
	if err := run.Quiet(cmd); err != nil {
		return "", fmt.Errorf("downloading Node.js %s with npm: %w", version, err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "node-linux-*.tgz"))
	if err != nil || len(archives) != 1 {
		return "", fmt.Errorf("npm downloaded no archive of Node.js %s", version)
	}
	unpack := exec.CommandContext(ctx, "tar", "-xzf", archives[0], "-C", work, "--strip-components=2",
		"--wildcards", "*/bin/node")
	return filepath.Join(work, "node"), run.Quiet(unpack)
}
