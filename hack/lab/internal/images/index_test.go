// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// startRegistry starts an in-memory registry and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestAnIndexReachesARegistry: each processor gets its own program under one name, and the digest is reproducible.
func TestAnIndexReachesARegistry(t *testing.T) {
	dir := t.TempDir()
	binaries := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		binaries[arch] = filepath.Join(dir, arch)
		if err := os.WriteFile(binaries[arch], []byte("program for "+arch), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, labels := Program{Entrypoint: "/manager"}, map[string]string{"org.opencontainers.image.version": "v1"}
	digest, err := WriteIndex(filepath.Join(dir, "one"), "v1", p, binaries, labels)
	if err != nil {
		t.Fatal(err)
	}
	again, err := WriteIndex(filepath.Join(dir, "two"), "v1", p, binaries, labels)
	if err != nil || again != digest {
		t.Fatalf("two builds: %s and %s, %v", digest, again, err)
	}
	ref := startRegistry(t) + "/memfit/manager:v1"
	pushed, err := Push(t.Context(), filepath.Join(dir, "one"), ref)
	if err != nil || pushed != digest {
		t.Fatalf("pushed %s, want %s: %v", pushed, digest, err)
	}
	at, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	for arch := range binaries {
		image, err := remote.Image(at, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch || config.Config.Labels["org.opencontainers.image.version"] != "v1" ||
			config.Config.User != "65532:65532" {
			t.Errorf("%s: %s, %+v", arch, config.Architecture, config.Config)
		}
	}
	if _, err := WriteIndex(filepath.Join(dir, "none"), "v1", p, nil, nil); err == nil {
		t.Error("an index without images was written")
	}
}

func TestPushRefusesANameWithoutTag(t *testing.T) {
	if _, err := Push(t.Context(), t.TempDir(), "registry.example/memfit"); err == nil {
		t.Error("a name without a tag was accepted")
	}
}
