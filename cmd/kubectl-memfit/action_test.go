// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/tree"
)

// runAsPlugin makes this test binary the plugin.
const runAsPlugin = "MEMFIT_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsPlugin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// gh stands for GitHub, which is not here: one pull request in a directory, by the flags that the action uses.
const gh = `#!/usr/bin/env bash
set -euo pipefail
echo "$*" >>"$GH_DIR/calls"
for arg; do [ "${last:-}" != --body-file ] || cp "$arg" "$GH_DIR/body.md"; last=$arg; done
case "$1 $2" in
"pr list") cat "$GH_DIR/open" 2>/dev/null || true ;;
"pr create") echo https://github.example/pull/1 | tee "$GH_DIR/open" ;;
"pr edit") [ "$3" = "$(cat "$GH_DIR/open")" ] ;;
"pr close") rm "$GH_DIR/open" ;;
*) exit 1 ;;
esac
`

// action is the GitHub Action of this repository beside a repository with a remote.
type action struct {
	t                     *testing.T
	checkout, remote, dir string
	env                   []string
}

// newAction reads action.yml and makes the environment of its last step: the inputs' defaults, and what with says.
func newAction(t *testing.T, kubeconfig string, with map[string]string) *action {
	t.Helper()
	var file struct {
		Inputs map[string]struct {
			Default  string
			Required bool
		}
		Runs struct {
			Steps []struct {
				ID  string
				Run string
				Env map[string]string
			}
		}
	}
	path := filepath.Join(tree.Root(), ".github", "actions", "memfit-export")
	text, err := os.ReadFile(filepath.Join(path, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	step := file.Runs.Steps[len(file.Runs.Steps)-1]
	if step.ID != "export" || !strings.Contains(step.Run, "export.sh") {
		t.Fatalf("the last step is %q (%s), want the export", step.ID, step.Run)
	}
	for name := range with {
		if _, found := file.Inputs[name]; !found {
			t.Fatalf("the action has no input %s", name)
		}
	}
	a := &action{t: t, dir: t.TempDir(), remote: t.TempDir(), checkout: t.TempDir()}
	input := regexp.MustCompile(`^\$\{\{ inputs\.([a-z-]+) \}\}$`)
	for name, value := range step.Env {
		found := input.FindStringSubmatch(value)
		if found == nil {
			t.Fatalf("%s is %q, want an input", name, value)
		}
		in, known := file.Inputs[found[1]]
		if !known {
			t.Fatalf("%s is of an input that is not declared: %s", name, value)
		}
		value = in.Default
		if own, given := with[found[1]]; given {
			value = own
		}
		a.env = append(a.env, name+"="+value)
	}
	a.write(filepath.Join(a.dir, "gh"), gh, 0o700)
	a.env = append(a.env,
		"PATH="+a.dir+":"+os.Getenv("PATH"), "HOME="+a.dir, "GH_DIR="+a.dir, "KUBECONFIG="+kubeconfig, runAsPlugin+"=1",
		"GITHUB_OUTPUT="+filepath.Join(a.dir, "output"), "GIT_CONFIG_NOSYSTEM=1", "RUN="+filepath.Join(path, "export.sh"),
	)
	a.git(a.remote, "init", "--quiet", "--bare", "--initial-branch=main")
	a.git(a.checkout, "clone", "--quiet", a.remote, ".")
	a.git(a.checkout, "switch", "--quiet", "--create", "main")
	a.write(filepath.Join(a.checkout, "README.md"), "shop\n", 0o600)
	a.commit("README.md")
	return a
}

func (a *action) write(path, text string, mode os.FileMode) {
	a.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		a.t.Fatal(err)
	}
}

func (a *action) git(dir string, args ...string) string {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), a.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		a.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// commit puts a file on main, as a person does.
func (a *action) commit(file string) {
	a.t.Helper()
	a.git(a.checkout, "add", file)
	a.git(a.checkout, "-c", "user.name=p", "-c", "user.email=p@example.com", "commit", "--quiet", "--message", file)
	a.git(a.checkout, "push", "--quiet", "origin", "main")
}

// run runs the action in a checkout of main, and returns what it said and its output.
func (a *action) run() (said, pullRequest string) {
	a.t.Helper()
	said, err := a.try()
	if err != nil {
		a.t.Fatalf("%v\n%s", err, said)
	}
	output, err := os.ReadFile(filepath.Join(a.dir, "output"))
	if err != nil {
		a.t.Fatal(err)
	}
	return said, strings.TrimPrefix(strings.TrimSpace(string(output)), "pull-request=")
}

func (a *action) try() (string, error) {
	a.t.Helper()
	a.git(a.checkout, "switch", "--quiet", "main")
	a.write(filepath.Join(a.dir, "output"), "", 0o600)
	a.write(filepath.Join(a.dir, "calls"), "", 0o600)
	cmd := exec.CommandContext(a.t.Context(), "bash", "-c", `"$RUN" "$0"`, os.Args[0])
	cmd.Dir, cmd.Env = a.checkout, append(os.Environ(), a.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// calls are the pull request's verbs that the action used.
func (a *action) calls() string {
	a.t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, "calls"))
	if err != nil {
		a.t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(text)) {
		verbs = append(verbs, strings.Fields(line)[1])
	}
	return strings.Join(verbs, " ")
}

// exports runs the script of the GitHub Action with the plugin, git and an API server, all real, from the first pull
// request to the one that is not needed any more.
func (c server) exports(t *testing.T) {
	t.Helper()
	before := &v1alpha1.MemoryRecommendation{}
	web := client.ObjectKey{Namespace: "shop", Name: "deployment-web"}
	if err := c.client.Get(t.Context(), web, before); err != nil {
		t.Fatal(err)
	}
	defer func() { // the tests after this one have its number
		status := before.Status
		if err := c.client.Get(t.Context(), web, before); err != nil {
			t.Fatal(err)
		}
		before.Status = status
		if err := c.client.Status().Update(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}()
	const url, proposal = "https://github.example/pull/1", "origin/memfit/sizes"
	a := newAction(t, c.kubeconfig, map[string]string{
		"file": "apps/shop/memory.yaml", "namespace": "shop", "base": "main", "token": "none",
	})

	said, got := a.run()
	if got != url || a.calls() != "list create" {
		t.Fatalf("the first run says %q, its pull request is %q, calls: %s", said, got, a.calls())
	}
	a.git(a.checkout, "fetch", "--quiet", "origin")
	if files := a.git(a.checkout, "diff", "--name-only", "origin/main", proposal); files != "apps/shop/memory.yaml\n" {
		t.Errorf("the pull request changes %q", files)
	}
	want, _, _ := c.run("reader", "export", "-n", "shop")
	if file := a.git(a.checkout, "show", proposal+":apps/shop/memory.yaml"); file != want {
		t.Errorf("the file is\n%s\nwant what the plugin prints:\n%s", file, want)
	}
	body, err := os.ReadFile(filepath.Join(a.dir, "body.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"| `Deployment shop/web` | `app` | 256Mi → **512Mi** |", "OOM-killed at limit 256Mi at 16:08:34Z",
	} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the text of the pull request does not say %q:\n%s", part, body)
		}
	}

	t.Run("without news nothing is written", func(t *testing.T) {
		before := a.git(a.remote, "rev-parse", "memfit/sizes")
		if said, got := a.run(); got != url || a.calls() != "list" {
			t.Errorf("%q, %q, calls: %s", said, got, a.calls())
		}
		if now := a.git(a.remote, "rev-parse", "memfit/sizes"); now != before {
			t.Errorf("the branch was %s and is %s", before, now)
		}
	})

	t.Run("another number renews the pull request", func(t *testing.T) {
		rec := &v1alpha1.MemoryRecommendation{}
		if err := c.client.Get(t.Context(), web, rec); err != nil {
			t.Fatal(err)
		}
		for i := range rec.Status.Containers {
			if r := rec.Status.Containers[i].Recommended; r != nil && r.Limit != nil {
				*r.Limit = resource.MustParse("448Mi")
			}
		}
		if err := c.client.Status().Update(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if said, got := a.run(); got != url || a.calls() != "list edit" {
			t.Errorf("%q, %q, calls: %s", said, got, a.calls())
		}
		if file := a.git(a.remote, "show", "memfit/sizes:apps/shop/memory.yaml"); !strings.Contains(file, "memory: 448Mi") {
			t.Errorf("the branch does not have the new number:\n%s", file)
		}
	})

	t.Run("somebody commits the sizes: the pull request is closed", func(t *testing.T) {
		a.git(a.checkout, "switch", "--quiet", "main")
		out, _, _ := c.run("reader", "export", "-n", "shop")
		path := filepath.Join(a.checkout, "apps", "shop")
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		a.write(filepath.Join(path, "memory.yaml"), "# written by hand\n"+out, 0o600)
		a.commit("apps/shop/memory.yaml")
		if said, got := a.run(); got != "" || a.calls() != "list close" {
			t.Errorf("%q, %q, calls: %s", said, got, a.calls())
		}
		if said, got := a.run(); got != "" || a.calls() != "list" {
			t.Errorf("once more: %q, %q, calls: %s", said, got, a.calls())
		}
	})

	t.Run("what cannot be exported fails, and writes nothing", func(t *testing.T) {
		for input, words := range map[string]string{
			"NAMESPACE=empty": "nothing can be exported", "FILE=../x": "inside the repository",
		} {
			broken := *a
			broken.env = append(append([]string{}, a.env...), input)
			if said, err := broken.try(); err == nil || !strings.Contains(said, words) || broken.calls() != "" {
				t.Errorf("%s: %v, %q, calls: %s; want %q", input, err, said, broken.calls(), words)
			}
		}
	})
}
