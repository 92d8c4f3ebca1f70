// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The same programs on the glibc of other Debian releases, each with that release's own loader: 2.31 has links that are
// not mangled and a key for each thread's cache, 2.41 is the newest with the layout of 2.35, 2.43 has no fast bins.
func init() {
	programs := []struct {
		name string
		args []string
	}{
		{"mixed", []string{"4", "16", "100000", "50", "200"}},
		{"small", []string{"8", "16", "1024", "20", "60"}},
		{"one-thread", []string{"0", "16", "100000", "50", "500"}},
	}
	for _, release := range []struct{ name, glibc string }{
		{"bullseye", "2.31"}, {"trixie", "2.41"}, {"forky", "2.43"},
	} {
		for _, p := range programs {
			cases = append(cases, Case{
				Name: "c-" + p.name + "-glibc-" + release.glibc, Check: checkTrim,
				Command: func(work string) (*exec.Cmd, error) { return onRelease(work, release.name, p.args) },
			})
		}
	}
	for _, p := range programs {
		cases = append(cases, Case{
			Name: "c-" + p.name + "-static", Check: checkTrim,
			Command: func(work string) (*exec.Cmd, error) { return static(work, p.args) },
		})
	}
}

// static links the C library into the program, so that no mapped library identifies it.
func static(work string, args []string) (*exec.Cmd, error) {
	if err := writeProgram(work); err != nil {
		return nil, err
	}
	program := filepath.Join(work, "malloc-static")
	if err := run(work, "gcc", "-O2", "-static", "-o", program, "malloc.c", "-lpthread"); err != nil {
		return nil, err
	}
	return exec.Command(program, args...), nil
}

// onRelease links with a release's C library and runs with it. Both come from Debian's packages by apt.
func onRelease(work, release string, args []string) (*exec.Cmd, error) {
	root, err := libcOf(release)
	if err != nil {
		return nil, fmt.Errorf("%w: the C library of %s: %w", ErrSkip, release, err)
	}
	if err := writeProgram(work); err != nil {
		return nil, err
	}
	program := filepath.Join(work, "malloc-"+release)
	if err := run(work, "gcc", "-O2", "-c", "-o", program+".o", "malloc.c"); err != nil {
		return nil, err
	}
	libraries := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	link := []string{
		"--sysroot=" + root, "-B" + libraries + "/", "-L" + libraries, "-o", program, program + ".o",
		filepath.Join(libraries, "libpthread.so.0"), // the development package links to it by its absolute path
	}
	if err := run(work, "gcc", link...); err != nil {
		return nil, err
	}
	loader := filepath.Join(libraries, "ld-linux-x86-64.so.2")
	return exec.Command(loader, append([]string{"--library-path", libraries, program}, args...)...), nil
}

func writeProgram(work string) error {
	if _, err := exec.LookPath("gcc"); err != nil {
		return fmt.Errorf("%w: there is no gcc", ErrSkip)
	}
	return os.WriteFile(filepath.Join(work, "malloc.c"), mallocProgram, 0o600)
}

// libcOf unpacks libc6 and libc6-dev of a release, once, from the repository of the system's own packages.
func libcOf(release string) (root string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "memfit-evalattribution", release)
	root = filepath.Join(dir, "root")
	if _, err := os.Stat(filepath.Join(root, "complete")); err == nil {
		return root, nil
	}
	for _, sub := range []string{
		"state/lists/partial", "cache/archives/partial", "parts", "root/usr/lib", "root/usr/lib64",
	} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", err
		}
	}
	apt, err := aptFor(dir, release)
	if err != nil {
		return "", err
	}
	if err := run(dir, "apt-get", append(apt, "update")...); err != nil {
		return "", err
	}
	if err := run(dir, "apt-get", append(apt, "download", "libc6", "libc6-dev")...); err != nil {
		return "", err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return "", err
	}
	// Older releases have /lib beside /usr/lib; as in a merged system, both are one here.
	for _, name := range []string{"lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	for _, p := range packages {
		unpack := fmt.Sprintf("dpkg-deb --fsys-tarfile %q | tar -x --keep-directory-symlink -C %q", p, root)
		if err := run(dir, "sh", "-c", unpack); err != nil {
			return "", err
		}
	}
	// In the package this is an absolute link, which would point outside the folder.
	loader := filepath.Join(root, "usr/lib64", "ld-linux-x86-64.so.2")
	if err := os.Remove(loader); err != nil && !os.IsNotExist(err) {
		return "", err
	}
	if err := os.Symlink("../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", loader); err != nil {
		return "", err
	}
	return root, os.WriteFile(filepath.Join(root, "complete"), nil, 0o600)
}

// aptFor returns options with which apt uses only a folder, with one release as its only source.
func aptFor(dir, release string) ([]string, error) {
	targets := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages")
	out, err := targets.Output()
	if err != nil {
		return nil, err
	}
	repository := ""
	for line := range strings.Lines(string(out)) {
		uri, from, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasSuffix(strings.TrimSuffix(uri, "/"), "/debian") && from != "" {
			repository = uri
		}
	}
	if repository == "" {
		return nil, fmt.Errorf("%w: apt has no Debian release as a source", ErrSkip)
	}
	const keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keys, repository, release)
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(source), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), nil, 0o600); err != nil {
		return nil, err
	}
	return []string{
		"-q", "-o", "Dir::Etc::sourcelist=" + dir + "/sources.list", "-o", "Dir::Etc::sourceparts=" + dir + "/parts",
		"-o", "Dir::State=" + dir + "/state", "-o", "Dir::Cache=" + dir + "/cache",
		"-o", "Dir::State::status=" + dir + "/status", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none",
	}, nil
}

func run(dir, program string, args ...string) error {
	command := exec.Command(program, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}
