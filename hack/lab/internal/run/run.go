// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package run runs programs of the machine.
package run

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// maxComplaint is how much of the end of a program's complaints an error has, in bytes.
const maxComplaint = 3000

// Output runs a command and returns what it prints. The error of one that fails has the end of what it printed on
// stderr.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("running `%s`: %w: %s", strings.Join(cmd.Args, " "), err,
			text[max(0, len(text)-maxComplaint):])
	}
	return stdout.Bytes(), nil
}

// Quiet runs a command whose output is not needed.
func Quiet(cmd *exec.Cmd) error {
	_, err := Output(cmd)
	return err
}
