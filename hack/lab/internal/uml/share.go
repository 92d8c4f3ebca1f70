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

// Share is the directory of the machine that a guest sees as /share. It needs no network and no login: the kernel of
// the guest reads and writes the machine's files, and nothing outside of this directory.
//
//	node.env     what the guest's first process is told
//	config, pki  read by containerd and the kubelet
//	images       image tars, while they are imported
//	commands     NAME.run is run by the guest, which then writes NAME.out and NAME.code
type Share string

// guestShare is where the guest has it.
const guestShare = "/share"

func (s Share) path(parts ...string) string {
	return filepath.Join(append([]string{string(s)}, parts...)...)
}

// Prepare makes an empty share with these settings for the guest's first process, which reads them as a shell does.
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

// Put writes a file that the guest finds below /share.
func (s Share) Put(name string, data []byte) error {
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		return fmt.Errorf("writing %s for the node: %w", name, err)
	}
	return nil
}

// AddImage shows an image tar of the machine to the guest, under a name of its own, and returns what takes it away.
func (s Share) AddImage(name, tar string) (guestPath string, remove func(), err error) {
	target := s.path("images", name)
	if err := linkOrCopy(tar, target); err != nil {
		return "", nil, fmt.Errorf("showing %s to the node: %w", tar, err)
	}
	return filepath.Join(guestShare, "images", name), func() { _ = os.Remove(target) }, nil
}

// poll is how often the answer to a command is looked for. The guest looks for commands every 200 ms.
const poll = 50 * time.Millisecond

// Run runs a shell script in the guest and returns what it printed. alive reports whether the guest still runs: a dead
// one never answers.
func (s Share) Run(ctx context.Context, alive func() bool, script string) ([]byte, error) {
	name := s.path("commands", strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err := os.WriteFile(name+".new", []byte(script), 0o600); err != nil {
		return nil, fmt.Errorf("handing a command to the node: %w", err)
	}
	defer func() {
		for _, end := range []string{".new", ".run", ".script", ".out", ".code"} {
			_ = os.Remove(name + end)
		}
	}()
	if err := os.Rename(name+".new", name+".run"); err != nil {
		return nil, fmt.Errorf("handing a command to the node: %w", err)
	}
	for {
		code, err := os.ReadFile(name + ".code")
		if err == nil {
			out, err := os.ReadFile(name + ".out")
			return out, errors.Join(err, exitError(code, out))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("waiting for the node's answer: %w", err)
		}
		if !alive() {
			return nil, errors.New("the node with cgroup v2 does not run")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the node's answer: %w", context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

// ExitError is the exit code of a command in the guest that failed.
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
		return fmt.Errorf("the node answered no exit code: %w", err)
	}
	if n != 0 {
		return &ExitError{Code: n, Output: string(out)}
	}
	return nil
}

// shellVariables writes NAME='value' lines, in a fixed order.
func shellVariables(env map[string]string) []byte {
	var out bytes.Buffer
	for _, name := range sortedKeys(env) {
		fmt.Fprintf(&out, "%s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	return out.Bytes()
}
