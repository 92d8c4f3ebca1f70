// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/runtimes"
	"github.com/memfit/memfit/test/budget"
)

// TestRecordedProcesses: testdata has what real processes showed, named after what ran, and what was made of it
// (test/runtimes records them).
func TestRecordedProcesses(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d recorded processes, want at least 30 (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var recorded struct {
				Facts  Facts
				Result Result
			}
			if err := json.Unmarshal(b, &recorded); err != nil {
				t.Fatal(err)
			}
			got := Detect(recorded.Facts)
			if diff := cmp.Diff(recorded.Result, got); diff != "" {
				t.Errorf("(-recorded +now):\n%s", diff)
			}
			if _, version, _ := strings.Cut(name, "-"); got.Version != "" && !strings.HasPrefix(version, got.Version) {
				t.Errorf("version %q of %s", got.Version, name)
			}
			for _, f := range got.Flags {
				if strings.Contains(f.Text, "secret") {
					t.Errorf("a word that does not speak of memory is kept: %q", f.Text)
				}
			}
		})
	}
}

// TestWhatDecides: the program itself is asked before its name, and its name before libraries.
func TestWhatDecides(t *testing.T) {
	nodeSymbol := runtimes.Lookup("NodeJS").Marks[0].Symbol
	program := func(path string, symbols ...string) File {
		f := File{Path: path, Program: true, Symbols: map[string]string{}}
		for _, s := range symbols {
			f.Symbols[s] = ""
		}
		return f
	}
	hotspot := File{Path: "/j/libjvm.so", Symbols: map[string]string{"gHotSpotVMStructs": ""}}
	python := File{Path: "/p/libpython3.12.so.1.0", Symbols: map[string]string{"Py_Version": "3.12.1"}}
	for name, c := range map[string]struct {
		facts         Facts
		want, version string
	}{
		"a program called java that is Node.js": {
			facts: Facts{Program: "/usr/bin/java", Files: []File{program("/usr/bin/java", nodeSymbol)}}, want: "NodeJS"},
		"Python that has loaded a JVM": {
			facts: Facts{Program: "/usr/bin/python3.12", Files: []File{program("/usr/bin/python3.12"), hotspot, python}},
			want:  "Python", version: "3.12.1"},
		"a launcher in C that has loaded a JVM": {
			facts: Facts{Program: "/usr/bin/jsvc", Files: []File{program("/usr/bin/jsvc"), hotspot}}, want: "JVM"},
		"uwsgi, which has loaded Python": {
			facts: Facts{Program: "/bin/server", Files: []File{program("/bin/server"), python}},
			want:  "Python", version: "3.12.1"},
		".NET by its path": {
			facts: Facts{Program: "/usr/bin/dotnet", Files: []File{program("/usr/bin/dotnet"),
				{Path: "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.11/libcoreclr.so"}}},
			want: "DotNet", version: "8.0.11"},
		"a program whose file cannot be read": {
			facts: Facts{Program: "/srv/app", Unreadable: "its file cannot be opened", Files: []File{program("/srv/app")}}},
		"no program at all": {},
		"a version that is no version": {
			facts: Facts{Program: "/usr/bin/ruby", Files: []File{program("/usr/bin/ruby"),
				{Path: "/l/libruby.so", Symbols: map[string]string{"ruby_version": "3.1\nRuntime: Go"}}}}, want: "Ruby"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Detect(c.facts)
			if got.Runtime != c.want || got.Version != c.version || len(got.Evidence) == 0 {
				t.Errorf("%q %q %q, want %q %q and evidence", got.Runtime, got.Version, got.Evidence, c.want, c.version)
			}
		})
	}
}

func TestEffectiveFlags(t *testing.T) {
	got := Detect(Facts{
		Program: "/usr/bin/node", Files: []File{{Path: "/usr/bin/node", Program: true}},
		Argv: []string{"node", "--max_old_space_size=300", "--require", "./x.js", "app.js", "--password=s3cret"},
		Env: map[string]string{
			"NODE_OPTIONS": "--max-semi-space-size=16 --title=s3cret", "MALLOC_ARENA_MAX": "2", "GOMEMLIMIT": "1",
		},
	}).Flags
	want := []Flag{
		{"MALLOC_ARENA_MAX=2", "MALLOC_ARENA_MAX"}, {"--max-semi-space-size=16", "NODE_OPTIONS"},
		{"--max_old_space_size=300", "command line"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSeesLimit: the versions are those of docs/guide/runtimes.md.
func TestSeesLimit(t *testing.T) {
	for _, c := range []struct {
		runtime, version string
		known, v1, v2    bool
	}{
		{"NodeJS", "10.24.1", true, false, false}, {"NodeJS", "18.20.8", true, true, false},
		{"NodeJS", "20.2.0", true, true, false}, {"NodeJS", "20.3.0", true, true, true},
		{"NodeJS", "20", false, false, false},
		{"NodeJS", "", false, false, false}, {"JVM", "1.8.0_181", true, false, false},
		{"JVM", "1.8.0_191", true, true, false},
		{"JVM", "1.8.0_422", true, true, true}, {"JVM", "9.0.4", true, false, false}, {"JVM", "11.0.15", true, true, false},
		{"JVM", "11.0.16", true, true, true}, {"JVM", "13.0.2", true, true, false}, {"JVM", "17.0.15+6", true, true, true},
		{"Go", "1.26.8", true, false, false}, {"Go", "", true, false, false}, {"Python", "3.11.7", false, false, false},
	} {
		s, known := runtimes.Lookup(c.runtime).DetectsLimit(runtimes.ParseVersion(c.version))
		if known != c.known || known && (s.V1 != c.v1 || s.V2 != c.v2) {
			t.Errorf("%s %s: %t %+v", c.runtime, c.version, known, s)
		}
	}
}

// TestVariables: what may be read of an environment is what memfit or the runtime sets, and nothing that people put
// secrets into.
func TestVariables(t *testing.T) {
	names := Variables()
	for _, name := range []string{"NODE_OPTIONS", "GOMEMLIMIT", "GOGC", "JAVA_TOOL_OPTIONS", "MALLOC_ARENA_MAX"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among them", name)
		}
	}
	if len(names) > 40 {
		t.Errorf("%d variables: %q", len(names), names)
	}
}

// TestWords: of a command line only words are copied that a table knows, however they are spelled.
func TestWords(t *testing.T) {
	line := "node\x00--max_old_space_size=300\x00--require\x00./x.js\x00--password=s3cret\x00-XX:+UseG1GC\x00-Xmx1g\x00" +
		"--\x00\x00\x00"
	want := []string{"", "--max_old_space_size=300", "-Xmx1g"}
	if diff := cmp.Diff(want, Words([]byte(line))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Words(nil); len(got) != 1 {
		t.Errorf("nothing has the words %q", got)
	}
	// what Detect reports of whole command lines, it reports of these words as well
	whole := Facts{Program: "/usr/bin/node", Files: []File{{Path: "/usr/bin/node", Program: true}},
		Argv: strings.Split(line, "\x00")}
	words := whole
	words.Argv = Words([]byte(line))
	if diff := cmp.Diff(Detect(whole).Flags, Detect(words).Flags); diff != "" {
		t.Errorf("(-whole +words):\n%s", diff)
	}
}

// FuzzWords: whatever a command line holds, its words are few, of it, and known.
func FuzzWords(f *testing.F) {
	f.Add([]byte("java\x00-Xmx1g\x00-jar\x00x.jar"))
	f.Add([]byte("\x00\x00-\xff\x00-xMX"))
	f.Add(bytes.Repeat([]byte("-Xmx1g\x00"), 9000))
	within := budget.Budget{Bytes: 256 << 10, PerByte: 16, CPU: time.Second}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = line[:min(len(line), 64<<10)]
		var got []string
		budget.Check(t, within, len(line), func() { got = Words(line) })
		if len(got) > maxWords {
			t.Errorf("%d words", len(got))
		}
		for _, word := range got[1:] {
			if len(word) > maxFlagText || !bytes.Contains(line, []byte(word)) {
				t.Errorf("%q", word)
			}
		}
	})
}

func TestSymbolsReadAsPeopleWriteThem(t *testing.T) {
	for name, want := range map[string]string{
		"_ZN4node5StartEiPPc": "node::Start", "gHotSpotVMStructs": "gHotSpotVMStructs", "_ZN": "_ZN", "_ZN4nod": "_ZN4nod",
		"_ZN2v88internalE": "v8::internal", "_ZNK4node5StartEv": "_ZNK4node5StartEv", "": "",
		"_ZN99999999999999999999aE": "_ZN99999999999999999999aE",
	} {
		if got := symbol(name); got != want {
			t.Errorf("%s reads %s, want %s", name, got, want)
		}
	}
}
