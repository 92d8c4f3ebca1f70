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

// Exit codes. The help of the verbs that use more than 0 and exitFailed documents them.
const (
	exitDiffers = 1 // -o diff found changes
	exitFailed  = 2 // the command failed; nothing was written
	exitProblem = 3 // everything was written, but a workload requests a profile that cannot be applied
)

// exit is the exit code of a command that has printed its output. Other errors are printed, and exit with exitFailed.
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

// completer is the name of the program that kubectl runs for a plugin's completions: a link to this one.
const completer = "kubectl_complete-memfit"

// arguments returns the command line. If called as the completer, these are words to complete.
func arguments(command []string) []string {
	if name := filepath.Base(command[0]); strings.TrimSuffix(name, filepath.Ext(name)) == completer {
		return append([]string{cobra.ShellCompRequestCmd}, command[1:]...)
	}
	return command[1:]
}

const rootLong = `Fit a workload's memory to its runtime, and the runtime to its memory.

All but inject read a cluster, and take kubectl's flags for that (kubectl options lists them); inject needs none.
Nothing is ever written to a cluster.`

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
