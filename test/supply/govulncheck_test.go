// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package supply tests release and supply chain scripts of hack/, and that CRDs remain compatible with the latest tag.
package supply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGovulncheckWithADatabaseOfOurOwn checks hack/govulncheck.sh with a local database in GOVULNDB, for environments
// without the public database. It reports a vulnerable function only if the program calls the function.
func TestGovulncheckWithADatabaseOfOurOwn(t *testing.T) {
	const calls = "package main\n\nimport \"net/url\"\n\nfunc main() { _, _ = url.Parse(\"x\") }\n"
	for name, tc := range map[string]struct {
		symbol   string
		database func(t *testing.T, symbol string) string
		fails    bool
		output   string
	}{
		"a called function":     {symbol: "Parse", database: database, fails: true, output: "GO-2026-99999"},
		"a function not called": {symbol: "JoinPath", database: database, output: "No vulnerabilities found"},
		"an unreadable database": {
			database: func(t *testing.T, _ string) string { return t.TempDir() }, fails: true, output: "db.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := t.TempDir()
			write(t, filepath.Join(program, "go.mod"), "module example.com/program\n\ngo 1.26\n")
			write(t, filepath.Join(program, "main.go"), calls)
			cmd := exec.CommandContext(t.Context(), "../../hack/govulncheck.sh", program)
			cmd.Env = append(os.Environ(), "GOVULNDB=file://"+tc.database(t, tc.symbol), "GOWORK=off")
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != tc.fails || !strings.Contains(string(out), tc.output) {
				t.Errorf("error %v, want a failure: %t, and %q in the output:\n%s", err, tc.fails, tc.output, out)
			}
		})
	}
}

// database writes a vulnerability database in the public format, in which every version of one function of Go's net/url
// is vulnerable, and returns its folder.
func database(t *testing.T, symbol string) string {
	const id, day = "GO-2026-99999", "2026-11-22T00:00:00Z"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "index", "db.json"), fmt.Sprintf(`{"modified":%q}`, day))
	write(
		t, filepath.Join(dir, "index", "modules.json"),
		fmt.Sprintf(`[{"path":"stdlib","vulns":[{"id":%q,"modified":%q}]}]`, id, day),
	)
	write(t, filepath.Join(dir, "index", "vulns.json"), fmt.Sprintf(`[{"id":%q,"modified":%q}]`, id, day))
	write(t, filepath.Join(dir, "ID", id+".json"), fmt.Sprintf(`{
		"schema_version": "1.3.1", "id": %q, "modified": %q, "published": %q, "summary": "synthetic", "details": "synthetic",
		"affected": [{
			"package": {"name": "stdlib", "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "net/url", "symbols": [%q]}]}
		}]
	}`, id, day, day, symbol))
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
