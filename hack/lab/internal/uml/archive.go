// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// keyring is the file with the keys of Debian's archive since Debian 11.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// archive downloads packages of one suite of Debian's archive. It has its own package lists, so the machine's apt is
// not changed, and it installs nothing. apt checks the signature of the index, and packages against the index.
type archive struct {
	dir string // apt's configuration, lists and cache
}

// openArchive downloads the index of the suite from the site into dir.
func openArchive(ctx context.Context, site, suite, dir string) (*archive, error) {
	a := &archive{dir: dir}
	for _, sub := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	files := map[string]string{
		"status":       "", // as if nothing were installed
		"sources.list": fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, site, suite),
		"apt.conf": fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s";
APT::Sandbox::User "root";
`, dir), // the cache may be below a home directory that apt's own user may not enter
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	_, err := a.run(ctx, "apt-get", "update", "--quiet")
	return a, err
}

// findSite returns the site from which the machine's apt gets Debian's packages. apt knows it once it has lists.
func findSite(ctx context.Context) (site string, err error) {
	err = machine.WithLists(ctx, func() error {
		out, err := run.Output(exec.CommandContext(
			ctx, "apt-get", "indextargets", "--format", "$(SITE)|$(ORIGIN)|$(LABEL)", "Created-By: Packages",
		))
		if err != nil {
			return err
		}
		var ok bool
		if site, ok = parseSite(out); !ok {
			return errors.New("apt on this machine has no source of Debian packages: " +
				"the node with cgroup v2 is built from Debian's kernel sources")
		}
		return nil
	})
	return site, err
}

// find returns the sources of the first suite that has any, and the archive to download them from. If they are not the
// wanted ones, why is a sentence that explains it.
func find(ctx context.Context, want Source, dir string) (a *archive, found Source, why string, err error) {
	site, err := findSite(ctx)
	if err != nil {
		return nil, Source{}, "", err
	}
	var failed error
	for _, suite := range suites {
		if a, err = openArchive(ctx, site, suite, filepath.Join(dir, suite)); err == nil {
			found, why, err = a.resolve(ctx, want)
		}
		if err == nil {
			return a, found, why, nil
		}
		failed = errors.Join(failed, fmt.Errorf("searching %s: %w", suite, err))
	}
	return nil, Source{}, "", failed
}

// resolve chooses sources of the suite and returns them with their checksum, and why they are not the wanted ones.
func (a *archive) resolve(ctx context.Context, want Source) (Source, string, error) {
	names, err := a.run(ctx, "apt-cache", "pkgnames", packagePrefix)
	if err != nil {
		return Source{}, "", err
	}
	out, err := a.run(ctx, "apt-cache", append([]string{"madison"}, strings.Fields(string(names))...)...)
	if err != nil {
		return Source{}, "", err
	}
	found, why, err := choose(want, parseMadison(out))
	if err != nil || found.SHA256 != "" {
		return found, why, err
	}
	if out, err = a.run(ctx, "apt-cache", "show", found.Package+"="+found.Version); err != nil {
		return Source{}, "", err
	}
	found.SHA256, err = parseSHA256(out)
	return found, why, err
}

// download downloads a package into dir and returns its file.
func (a *archive) download(ctx context.Context, s Source, dir string) (string, error) {
	cmd := a.command(ctx, "apt-get", "download", "--quiet", s.Package+"="+s.Version)
	cmd.Dir = dir
	if err := run.Quiet(cmd); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, s.Package+"_*.deb"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("apt-get download of %s wrote %d files to %s, want 1", s.Package, len(files), dir)
	}
	return files[0], nil
}

func (a *archive) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"), "LC_ALL=C")
	return cmd
}

func (a *archive) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return run.Output(a.command(ctx, program, args...))
}
