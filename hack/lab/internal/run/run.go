// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package run runs programs of the machine and returns their output or an error with the end of stderr.
package run

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// maxStderr is the length of the part of stderr in an error, in bytes.
const maxStderr = 3000

// Output runs a command and returns its stdout. After a failure, the error has the end of its stderr.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("running `%s`: %w: %s", strings.Join(cmd.Args, " "), err,
			text[max(0, len(text)-maxStderr):])
	}
	return stdout.Bytes(), nil
}

// Quiet runs a command whose output is not needed.
func Quiet(cmd *exec.Cmd) error {
	_, err := Output(cmd)
	return err
}
