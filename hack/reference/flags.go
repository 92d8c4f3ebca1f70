// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"flag"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var flagsHead = []string{"flag", "default", "meaning"}

// Flags returns the section about the flags of a program.
func Flags(set *flag.FlagSet) string {
	var rows [][]string
	set.VisitAll(func(f *flag.Flag) {
		rows = append(rows, []string{code("--" + f.Name), quoted(f.DefValue), usage(f.Usage)})
	})
	return "## Flags\n\n" + table(flagsHead, rows)
}

// Commands returns a section with the help of each command below root, except hidden ones. It leaves out the flags in
// without.
func Commands(root *cobra.Command, without ...string) string {
	var b strings.Builder
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			b.WriteString("\n## " + root.CommandPath() + " " + cmd.Name() + "\n\n" + command(cmd, without))
		}
	}
	return b.String()
}

func command(cmd *cobra.Command, without []string) string {
	text := prose(cmd.Long) + "\nUsage: " + code(cmd.UseLine()) + "\n"
	if cmd.Example != "" {
		text += "\n```sh\n" + outdented(cmd.Example) + "\n```\n"
	}
	var rows [][]string
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || slices.Contains(without, f.Name) {
			return
		}
		name := code("--" + f.Name)
		if f.Shorthand != "" {
			name = code("-"+f.Shorthand) + ", " + name
		}
		rows = append(rows, []string{name, quoted(f.DefValue), usage(f.Usage)})
	})
	if len(rows) == 0 {
		return text
	}
	return text + "\n" + table(flagsHead, rows)
}

// quoted returns a default value as code, or nothing for an empty one.
func quoted(value string) string {
	if value == "" || value == "[]" {
		return ""
	}
	return code(value)
}

// usage returns the help of a flag as a sentence. It marks text in angle brackets as code, because it would be HTML.
func usage(text string) string {
	return sentence(regexp.MustCompile(`<[^>]*>`).ReplaceAllStringFunc(text, code))
}

// prose converts help to Markdown: paragraphs become text, and indented lines become code.
func prose(help string) string {
	var blocks []string
	for block := range strings.SplitSeq(strings.Trim(help, "\n"), "\n\n") {
		lines := strings.Split(block, "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, " ") })
		if at < 0 {
			at = len(lines)
		}
		if at > 0 {
			blocks = append(blocks, strings.ReplaceAll(strings.Join(lines[:at], " "), "|", `\|`))
		}
		if at < len(lines) {
			blocks = append(blocks, "```text\n"+outdented(strings.Join(lines[at:], "\n"))+"\n```")
		}
	}
	return strings.Join(blocks, "\n\n") + "\n"
}

// outdented removes two spaces before each line of the block.
func outdented(block string) string {
	lines := strings.Split(strings.Trim(block, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
