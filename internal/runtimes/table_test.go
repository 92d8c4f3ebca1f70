// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// everything is facts under which as many knobs as possible have a value.
func everything(limit memory.Bytes, version string) Facts {
	return Facts{
		Version: ParseVersion(version), Limit: limit, Cgroup: limit, LimitText: limit.String(),
		Tuning: Tuning{
			ArenaMax: new(int32(2)), TrimThreshold: 128 * memory.KiB, TrimInterval: new(30 * time.Second), HeapPercent: 60,
			OnlyAtLimit: true, Cgo: true, G1PeriodicGCInterval: 5 * time.Minute, SemiSpace: 16 * memory.MiB,
			ConserveMemory: new(int32(5)),
		},
	}
}

func TestEveryValueIsWhatItsRuntimeReads(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range All() {
		for _, limit := range []memory.Bytes{
			0, 1, 48 * memory.MiB, 128 * memory.MiB, 200 * memory.MiB, 512 * memory.MiB, memory.GiB, 3 * memory.GiB,
			32 * memory.GiB, memory.Max,
		} {
			for _, version := range []string{"", "8", "17.0.9", "20.11", "24", "1.22"} {
				for _, auto := range []bool{false, true} {
					f := everything(limit, version)
					f.Tuning.AutoMemLimit, f.LimitUnseen = auto, auto
					for _, heapLimit := range []memory.Bytes{0, 100 * memory.MiB} {
						if f.Tuning.HeapLimit = heapLimit; heapLimit > 0 {
							f.Tuning.HeapPercent = 0
						}
						checkKnobs(t, r, f, seen)
					}
				}
			}
		}
	}
	for _, r := range All() {
		for _, k := range r.Knobs {
			if !seen[k.Name] {
				t.Errorf("%s: %s never had a value: the test does not reach it", r.Name, k.Name)
			}
		}
	}
}

func checkKnobs(t *testing.T, r *Runtime, f Facts, seen map[string]bool) {
	t.Helper()
	for _, k := range r.Knobs {
		v := k.Derive(f)
		if set := btoi(v.Value != "") + btoi(v.SkipReason != "") + btoi(v.Suggest != ""); set > 1 {
			t.Errorf("%s %s gives more than one answer: %+v", r.Name, k.Name, v)
		}
		if v.Value == "" {
			continue
		}
		seen[k.Name] = true
		if !regexp.MustCompile(k.Form).MatchString(v.Value) {
			t.Errorf("%s at %s: %s is set to %q, which is not %s", r.Name, f.LimitText, k.Name, v.Value, k.Form)
		}
		if v.Why == "" {
			t.Errorf("%s: %s=%s says no reason", r.Name, k.Name, v.Value)
		}
		if k.Follows != Nothing && !v.Fixed && f.Limit == 0 {
			t.Errorf("%s: %s=%s is derived from a limit that is not there", r.Name, k.Name, v.Value)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestTheTableKeepsItsPromises(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, never, found := strings.Cut(string(page), "\n## Never set\n")
	if !found || !strings.Contains(never, "| `LD_PRELOAD` |") {
		t.Fatal("docs/reference/settings.md does not say what is never set")
	}
	for _, r := range All() {
		if r.Title == "" {
			t.Errorf("%s: a row needs a title", r.Name)
		}
		for _, k := range r.Knobs {
			if !strings.HasPrefix(k.Form, "^") || !strings.HasSuffix(k.Form, "$") {
				t.Errorf("%s: %s needs a Form, from ^ to $: what its runtime can read", r.Name, k.Name)
			}
			if strings.Contains(never, "| `"+k.Env+"` |") || strings.Contains(never, "| `"+k.Name+"` |") {
				t.Errorf("%s has %s, of which docs/reference/settings.md says that it is never set", r.Name, k.Name)
			}
			if r == auto && k.Tier != TierA {
				t.Errorf("Auto has %s of tier %s: only what no process refuses may go in unasked", k.Name, k.Tier)
			}
			if k.List == nil && (k.Name != k.Env || len(k.Guard) > 0) {
				t.Errorf(
					"%s: %s is a value of its own, so it is called what its variable is called and has no guard", r.Name, k.Name,
				)
			}
		}
	}
	if Lookup("Cobol") != auto || Lookup("JVM").Name != "JVM" {
		t.Error("Lookup: unknown names must get Auto's row, known ones their own")
	}
}

// TestRowsDoNotMeet: a row that repeats what another one has would win or lose by its place in the table.
func TestRowsDoNotMeet(t *testing.T) {
	names, orders, programs := map[string]bool{}, map[int]string{}, map[string]string{}
	split := map[string]*Grammar{}
	for _, r := range All() {
		if names[r.Name] {
			t.Errorf("two rows are called %s", r.Name)
		}
		names[r.Name] = true
		if other := orders[r.Order]; r.Order != 0 && other != "" {
			t.Errorf("%s and %s both have Order %d", other, r.Name, r.Order)
		}
		orders[r.Order] = r.Name
		for _, pattern := range r.Commands {
			if other := programs[pattern]; other != "" {
				t.Errorf("%s and %s both are the program %s", other, r.Name, pattern)
			}
			programs[pattern] = r.Name
		}
		for _, k := range r.Knobs {
			if g, known := split[k.Env]; known && g != k.List {
				t.Errorf("%s: another row splits %s another way", r.Name, k.Env)
			}
			split[k.Env] = k.List
		}
	}
	for program := range programs {
		if plain := strings.TrimSuffix(program, "*"); ByCommand(plain).Name != programs[program] {
			t.Errorf("%s is taken for %s, want %s", plain, ByCommand(plain).Name, programs[program])
		}
	}
}

// TestTheOrderIsTheTables: people read the lists, and a golden pair has one of them, so it does not depend on the names
// of files.
func TestTheOrderIsTheTables(t *testing.T) {
	var got []string
	for _, r := range sorted(
		[]*Runtime{{Name: "Native"}, {Name: "B", Order: 2}, {Name: "Brook"}, {Name: "Auto", Order: 1}},
	) {
		got = append(got, r.Name)
	}
	if want := []string{"Auto", "B", "Brook", "Native"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if All()[0] != auto {
		t.Errorf("the first row is %s, want Auto", All()[0].Name)
	}
}

func TestByCommand(t *testing.T) {
	for command, want := range map[string]string{
		"node": "NodeJS", "/usr/local/bin/node": "NodeJS", "nodejs": "NodeJS", "java": "JVM", "/opt/jdk/bin/java": "JVM",
		"python3.12": "Python",
		"python":     "Python", "ruby3.1": "Ruby", "bundle": "Ruby", "php-fpm8.2": "PHP", "dotnet": "DotNet", "deno": "Deno",
		// Not certain: a shell, a wrapper, another program that only sounds alike.
		"sh": "", "npm": "", "yarn": "", "bun": "", "nodemon": "", "javac": "", "python-wrapper": "", "pm2": "", "": "",
		"/": "", "node-gyp": "",
	} {
		got := ""
		if r := ByCommand(command); r != nil {
			got = r.Name
		}
		if got != want {
			t.Errorf("command %q: %q, want %q", command, got, want)
		}
	}
}

func TestAdvisories(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime, version, variant string
		want                      string // a part of one advisory; empty: none at all about versions
	}{
		"node 18 on cgroup v2":      {"NodeJS", "18.20.8", "", "before 20.3"},
		"node 20 may be 20.2":       {"NodeJS", "20", "", ""},
		"node 20.11 is fine":        {"NodeJS", "20.11", "", ""},
		"node 24":                   {"NodeJS", "24", "", "semi-spaces four times"},
		"jdk 8u181":                 {"JVM", "8u181", "", "before 8u191"},
		"jdk 8u191":                 {"JVM", "1.8.0_191", "", "before 8u372"},
		"jdk 11.0.15":               {"JVM", "11.0.15", "", "before 11.0.16"},
		"jdk 17.0.9":                {"JVM", "17.0.9", "", ""},
		"openj9 is another machine": {"JVM", "8u181", "OpenJ9", ""},
		"native image":              {"JVM", "", "NativeImage", "80 % of the limit"},
		"go 1.18":                   {"Go", "1.18", "", "does not know GOMEMLIMIT"},
		"go 1.25":                   {"Go", "1.25.1", "", "GOMAXPROCS"},
		"python 3.14.4":             {"Python", "3.14.4", "", "upgrade to 3.14.5"},
		".net 10.0.3":               {"DotNet", "10.0.3", "", "10.0.11"},
		"unknown version":           {"NodeJS", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := *Lookup(tc.runtime)
			r.Advice = ""
			got := strings.Join(r.Advise(Facts{Version: ParseVersion(tc.version), Variant: tc.variant}), "\n")
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("advisories %q, want %q", got, tc.want)
			}
		})
	}
	for _, r := range All() {
		for _, a := range r.Advisories {
			if a.Source == "" || a.Text == "" {
				t.Errorf("%s: an advisory needs a text and a source: %+v", r.Name, a)
			}
		}
	}
}

// TestTrimVersions: JDK-8293114 is in 22, 21.0.1 and 17.0.9 and in no other line of updates. Of a version without its
// update neither is certain, and the guards make the flag safe.
func TestTrimVersions(t *testing.T) {
	for version, want := range map[string]string{
		"8": "lacks", "8.0.342": "lacks", "8u412": "lacks", "1.8.0_191": "lacks", "9": "lacks", "11": "lacks",
		"11.0.22": "lacks", "16.0.2": "lacks", "17.0.8": "lacks", "17.0.8.1": "lacks", "17.0.9": "knows",
		"17.0.15+6": "knows",
		"17":        "", "17.0": "", "18": "lacks", "19.0.2": "lacks", "20.0.2": "lacks", "21": "", "21.0.0": "lacks",
		"21.0.1": "knows", "21.0.8": "knows", "22": "knows", "22.0.1": "knows", "25": "knows", "": "",
	} {
		v := ParseVersion(version)
		got := map[[2]bool]string{{true, false}: "knows", {false, true}: "lacks", {}: ""}[[2]bool{knowsTrim(v), lacksTrim(v)}]
		verdict := trimInterval(Facts{Version: v})
		if got != want || (verdict.SkipReason != "") != (want == "lacks") ||
			strings.Contains(verdict.Why, "from JDK") != (want == "") {
			t.Errorf("JDK %q: %q, want %q; %+v", version, got, want, verdict)
		}
	}
}

// TestLaunchers: rows are in order and complete, so that people find a variable in the table of the documentation.
func TestLaunchers(t *testing.T) {
	for _, r := range All() {
		for i, l := range r.Launchers {
			if l.Holds == "" || l.Of == "" || l.Source == "" {
				t.Errorf("%s: %s says not how it is read, by what, or where that is documented: %+v", r.Name, l.Name, l)
			}
			if i > 0 && r.Launchers[i-1].Name >= l.Name {
				t.Errorf("%s: %s stands before %s", r.Name, r.Launchers[i-1].Name, l.Name)
			}
			if got, ok := r.Launcher(l.Name); !ok || got != l {
				t.Errorf("%s: %s is not found", r.Name, l.Name)
			}
		}
	}
	if _, ok := Lookup("NodeJS").Launcher("JAVA_OPTS"); ok {
		t.Error("Node.js has a launcher of the JVM")
	}
}
