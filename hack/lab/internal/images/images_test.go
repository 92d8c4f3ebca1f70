// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestMergedLeadsThroughTheLinksOfAMergedUsr(t *testing.T) {
	for in, want := range map[string]string{
		"./":                             "",
		"./bin/dash":                     "usr/bin/dash",
		"./lib/x86_64-linux-gnu/libc.so": "usr/lib/x86_64-linux-gnu/libc.so",
		"./lib64":                        "lib64",
		"./usr/bin/java":                 "usr/bin/java",
		"./etc/passwd":                   "etc/passwd",
		"./library/x":                    "library/x",
	} {
		if got := merged(in); got != want {
			t.Errorf("merged(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSelectKeepsWhatIsNamedAndThePauseImage(t *testing.T) {
	names := func(list string) (got []string) {
		t.Helper()
		selected, err := Select(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range selected {
			got = append(got, r.name())
		}
		return got
	}
	if got, want := names("node,goprobe"), []string{"pause", "goprobe", "node"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := names(""); len(got) != len(Workloads()) {
		t.Errorf("an empty list: got %v, want all", got)
	}
	if _, err := Select("node,nodejs"); err == nil || !strings.Contains(err.Error(), `"nodejs"`) {
		t.Errorf("an unknown name: got error %v, want one that quotes it", err)
	}
}

func TestDebFilesReadsWhatAptPrints(t *testing.T) {
	const printed = `Reading package lists...
'file:/pool/libc6_2.36-9_amd64.deb' libc6_2.36-9_amd64.deb 2759320 SHA256:aa
'file:/pool/perl-base_5.36.0-7_amd64.deb' perl-base_5.36.0-7_amd64.deb 1609596 SHA256:bb
'file:/pool/dash_0.5.12-2_amd64.deb' dash_0.5.12-2_amd64.deb 91848 SHA256:cc
`
	got, err := debFiles("/debs", []byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/debs/dash_0.5.12-2_amd64.deb", "/debs/libc6_2.36-9_amd64.deb"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: sorted, without what a container does not need", got, want)
	}
	if _, err := debFiles("/debs", []byte("Reading package lists...\n")); err == nil {
		t.Error("a list without packages: no error")
	}
}

func TestALayerHoldsEveryPathOnceAndIsTheSameTwice(t *testing.T) {
	write := func() []byte {
		path := filepath.Join(t.TempDir(), "layer.tar")
		err := writeLayer(path, func(l *layer) error {
			return errors.Join(l.skeleton(), l.skeleton(), l.links(map[string]string{"usr/bin/b": "x", "usr/bin/a": "x"}))
		})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := write()
	if !bytes.Equal(first, write()) {
		t.Error("two layers of the same content differ")
	}
	seen := map[string]int{}
	var modes = map[string]int64{}
	for in := tar.NewReader(bytes.NewReader(first)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[h.Name]++
		modes[h.Name] = h.Mode
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s occurs %d times", name, n)
		}
	}
	if modes["tmp/"] != 0o1777 {
		t.Errorf("/tmp has mode %o, want 1777: images that do not run as root write there", modes["tmp/"])
	}
	for _, name := range []string{"usr/", "usr/bin/", "usr/bin/a", "etc/passwd"} {
		if seen[name] == 0 {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestWriteProgram(t *testing.T) {
	dir := t.TempDir()
	binary, out := filepath.Join(dir, "manager"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(binary, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteProgram(
		out, Program{Ref: "memfit.test/manager:dev", Binary: binary, Entrypoint: "/manager"},
	); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
		t.Errorf("config = %+v", config.Config)
	}
	if err := WriteProgram(out, Program{Ref: "memfit", Binary: binary, Entrypoint: "/manager"}); err == nil {
		t.Error("a name without a tag was accepted")
	}
	if err := WriteProgram(
		out, Program{Ref: "memfit.test/manager:dev", Binary: binary, Entrypoint: "manager"},
	); err == nil {
		t.Error("a relative entrypoint was accepted")
	}
}

// TestAnImageIsTheSameEverywhere: the machine's time zone does not change the digest.
func TestAnImageIsTheSameEverywhere(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(binary, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = time.Local.String() // reads the machine's zone, once
	here := *time.Local
	t.Cleanup(func() { *time.Local = here })
	var digests []string
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 9*3600)} {
		*time.Local = *zone
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := WriteProgram(
			out, Program{Ref: "memfit.test/manager:dev", Binary: binary, Entrypoint: "/manager"},
		); err != nil {
			t.Fatal(err)
		}
		digest, err := Digest(out)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("the digest depends on the time zone: %v", digests)
	}
}
