// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-memfit is memfit's kubectl plugin: `kubectl memfit`.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // time zones of maintenance windows, in case the machine has none

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

// Exit codes besides 0. A command that uses exitDiffers or exitProblem documents its codes in its help.
const (
	exitDiffers = 1 // -o diff found changes
	exitFailed  = 2 // the command failed
	exitProblem = 3 // everything was written, but a document is unreadable, or a profile is missing or ambiguous
)

// exit is an error that only sets the exit code. For other errors, main prints the error and exits with exitFailed.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	cmd := root()
	cmd.SetArgs(arguments(os.Args))
	err := cmd.Execute()
	if err == nil {
		return
	}
	if code, ok := errors.AsType[exit](err); ok {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "error: "+err.Error())
	os.Exit(exitFailed)
}

// completer is the program that kubectl runs to complete the plugin's command line. It is a link to this program.
const completer = "kubectl_complete-memfit"

// arguments returns the arguments of a command line. If its program is completer, it adds cobra's completion command.
func arguments(command []string) []string {
	if name := filepath.Base(command[0]); strings.TrimSuffix(name, filepath.Ext(name)) == completer {
		return append([]string{cobra.ShellCompRequestCmd}, command[1:]...)
	}
	return command[1:]
}

const rootLong = `Fit a workload's memory to its runtime, and the runtime to its memory.

All commands except inject read a cluster and take kubectl's flags (kubectl options lists them). inject needs no
cluster. No command writes to a cluster.`

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-memfit",
		Short:         "Fit a workload's memory to its runtime, and the runtime to its memory",
		Long:          rootLong,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl memfit"},
	}
	cmd.AddCommand(
		statusCommand(), explainCommand(), historyCommand(), whyCommand(), reportCommand(), exportCommand(), mapCommand(),
		topCommand(), scanCommand(), injectCommand(),
	)
	return cmd
}
