// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Config is the part of an image's configuration that differs between images.
type Config struct {
	Entrypoint []string
	Env        []string
	Arch       string // a GOARCH; empty: this machine's
	Labels     map[string]string
}

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Write builds an image from layers, which are plain tar files, and saves it in the format that `ctr import`, `docker
// load` and `kind load image-archive` read. It moves the file to path when it is complete.
func Write(path, ref string, config Config, layers ...string) error {
	tag, err := name.NewTag(ref, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("%q is not an image name with a tag, like memfit.test/manager:dev: %w", ref, err)
	}
	image, err := assemble(config, layers)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := errors.Join(tarball.Write(tag, image, tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return fmt.Errorf("writing the image %s: %w", ref, err)
	}
	return os.Rename(tmp.Name(), path)
}

// Digest returns the digest that the image in a tar file will have in a registry.
func Digest(path string) (string, error) {
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return "", fmt.Errorf("reading the image %s: %w", path, err)
	}
	digest, err := image.Digest()
	return digest.String(), err
}

func assemble(config Config, layers []string) (v1.Image, error) {
	image := empty.Image
	for _, file := range layers {
		// Images remain on this machine. Without compression they take twice the disk (0.8 GB for all), but half the time
		// to build and to unpack.
		l, err := tarball.LayerFromFile(file, tarball.WithCompressionLevel(gzip.NoCompression))
		if err != nil {
			return nil, fmt.Errorf("reading a layer: %w", err)
		}
		if image, err = mutate.AppendLayers(image, l); err != nil {
			return nil, fmt.Errorf("adding a layer: %w", err)
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", cmp.Or(config.Arch, runtime.GOARCH)
	file.Created = v1.Time{Time: epoch}
	file.Config.Entrypoint = config.Entrypoint
	file.Config.Env = append([]string{defaultPath}, config.Env...)
	file.Config.User = fmt.Sprintf("%d:%[1]d", User)
	file.Config.WorkingDir = "/"
	file.Config.Labels = config.Labels
	return mutate.ConfigFile(image, file)
}

// Program specifies an image with only a static binary and users. memfit's own images are built from it without Docker.
type Program struct {
	Ref        string
	Binary     string // its path on this machine
	Entrypoint string // its path in the image
}

// WriteProgram saves the image of a program.
func WriteProgram(path string, p Program) error {
	work, err := os.MkdirTemp("", "memfit-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, "layer.tar")
	if err := p.layer(file); err != nil {
		return err
	}
	return Write(path, p.Ref, Config{Entrypoint: []string{p.Entrypoint}}, file)
}

func (p Program) layer(file string) error {
	if !filepath.IsAbs(p.Entrypoint) {
		return fmt.Errorf("the entrypoint %q is not an absolute path", p.Entrypoint)
	}
	return writeLayer(file, func(l *layer) error {
		if err := l.skeleton(); err != nil {
			return err
		}
		return l.file(p.Entrypoint[1:], 0o755, p.Binary)
	})
}
