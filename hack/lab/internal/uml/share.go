// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Share is a directory of the machine that the guest mounts as /share, without network and login. The guest has no
// access to other files of the machine.
//
//	node.env     settings for the guest's first process
//	config, pki  files for containerd and the kubelet
//	images       image tars, while they are imported
//	commands     scripts: the guest runs NAME.run and then writes NAME.out and NAME.code
type Share string

// guestShare is the mount point in the guest.
const guestShare = "/share"

func (s Share) path(parts ...string) string {
	return filepath.Join(append([]string{string(s)}, parts...)...)
}

// Prepare creates an empty share with these settings, as shell variables, for the guest's first process.
func (s Share) Prepare(env map[string]string) error {
	if err := os.RemoveAll(string(s)); err != nil {
		return err
	}
	for _, dir := range []string{"config/cni", "pki", "images", "commands"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(s.path("node.env"), shellVariables(env), 0o600)
}

// Put writes a file into the share. name is its path below /share.
func (s Share) Put(name string, data []byte) error {
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		return fmt.Errorf("writing %s for the node: %w", name, err)
	}
	return nil
}

// AddImage adds an image tar of the machine to the share. It returns the path in the guest and a function that removes
// the file from the share.
func (s Share) AddImage(name, tar string) (guestPath string, remove func(), err error) {
	target := s.path("images", name)
	if err := linkOrCopy(tar, target); err != nil {
		return "", nil, fmt.Errorf("copying %s to the node: %w", tar, err)
	}
	return filepath.Join(guestShare, "images", name), func() { _ = os.Remove(target) }, nil
}

// poll is the time between two checks for the result of a command. The guest checks for commands every 200 ms.
const poll = 50 * time.Millisecond

// Run runs a shell script in the guest and returns its output. It gives up when alive reports that the guest has ended.
func (s Share) Run(ctx context.Context, alive func() bool, script string) ([]byte, error) {
	name := s.path("commands", strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err := os.WriteFile(name+".new", []byte(script), 0o600); err != nil {
		return nil, fmt.Errorf("writing a command for the node: %w", err)
	}
	defer func() {
		for _, end := range []string{".new", ".run", ".script", ".out", ".code"} {
			_ = os.Remove(name + end)
		}
	}()
	if err := os.Rename(name+".new", name+".run"); err != nil {
		return nil, fmt.Errorf("writing a command for the node: %w", err)
	}
	for {
		code, err := os.ReadFile(name + ".code")
		if err == nil {
			out, err := os.ReadFile(name + ".out")
			return out, errors.Join(err, exitError(code, out))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the node's exit code: %w", err)
		}
		if !alive() {
			return nil, errors.New("the node with cgroup v2 is not running")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the command on the node: %w", context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

// ExitError is the error of a command that failed in the guest.
type ExitError struct {
	Code   int
	Output string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("exit code %d: %s", e.Code, strings.TrimSpace(e.Output))
}

func exitError(code, out []byte) error {
	n, err := strconv.Atoi(string(bytes.TrimSpace(code)))
	if err != nil {
		return fmt.Errorf("parsing the node's exit code: %w", err)
	}
	if n != 0 {
		return &ExitError{Code: n, Output: string(out)}
	}
	return nil
}

// shellVariables returns NAME='value' lines in a fixed order.
func shellVariables(env map[string]string) []byte {
	var out bytes.Buffer
	for _, name := range sortedKeys(env) {
		fmt.Fprintf(&out, "%s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	return out.Bytes()
}
