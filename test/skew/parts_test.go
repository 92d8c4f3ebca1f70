// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package skew

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memfit/memfit/test/tree"
)

// release is one version: its name, and the folders of its programs and CRDs.
type release struct{ name, programs, crds string }

// oldest is the first commit with the API and stored formats of v0.1; the tag v0.1.0 will replace it.
const oldest = "e19f324b"

// older builds the release of the commit in OLDER, or of oldest.
func older(t *testing.T) release {
	t.Helper()
	commit, target := cmp.Or(os.Getenv("OLDER"), oldest), t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "-C", tree.Root(), "archive", commit)
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", target)
	var stderr bytes.Buffer
	archive.Stderr, unpack.Stderr = &stderr, &stderr
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := unpack.Start(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Run(); err != nil {
		t.Fatalf("commit %s: %v: %s: a shallow clone lacks it (git fetch --unshallow); OLDER selects another",
			commit, err, stderr.String())
	}
	if err := unpack.Wait(); err != nil {
		t.Fatalf("unpacking commit %s: %v: %s", commit, err, stderr.String())
	}
	return built(t, commit, target)
}

func built(t *testing.T, name, tree string) release {
	t.Helper()
	r := release{name: name, programs: t.TempDir(), crds: filepath.Join(tree, "config", "crd", "bases")}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", r.programs+"/",
		"./cmd/manager", "./cmd/agent", "./cmd/kubectl-memfit")
	build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return r
}

// process is a running program.
type process struct {
	*exec.Cmd
	log log
}

// log collects the output of a program.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// errors returns the lines that report an error, or a field that the API server does not know.
func (l *log) errors() (lines []string) {
	for line := range strings.SplitSeq(l.String(), "\n") {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, `"level":"ERROR"`) ||
			strings.Contains(line, "unknown field") || strings.Contains(line, "not declared in schema") {
			lines = append(lines, line)
		}
	}
	return lines
}

func start(t *testing.T, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, args...)} //nolint:noctx // stop ends it
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), env...), &p.log, &p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text := p.log.String()
			t.Logf("last log lines of %s:\n%s", program, text[max(0, len(text)-3000):])
		}
	})
	return p
}

// stop kills the process and waits for its end.
func (p *process) stop() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// manager starts the release's manager without webhooks, and waits until it is ready.
func (r release) manager(t *testing.T, kubeconfig string) *process {
	t.Helper()
	health := address(t)
	p := start(t, filepath.Join(r.programs, "manager"),
		[]string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=memfit-system", "ENABLE_WEBHOOKS=false"},
		"--health-probe-bind-address="+health, "--metrics-bind-address=0", "--usage-interval=0", "--leader-elect=false")
	eventually(t, "the manager of "+r.name+" is ready", func() error {
		resp, err := http.Get("http://" + health + "/readyz") //nolint:noctx // repeated until a deadline
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", resp.Status)
		}
		return nil
	})
	return p
}

// agent starts the release's agent with cgroup and proc files below cgroups, and with an API server that needs no
// credentials.
func (r release) agent(t *testing.T, apiServer, cgroups string) *process {
	t.Helper()
	return start(t, filepath.Join(r.programs, "agent"), nil, "--tier=see", "--node-name="+node, "--cgroup-root="+cgroups,
		"--proc-root="+filepath.Join(cgroups, "proc"), "--bind-address=127.0.0.1:0", "--api-server="+apiServer)
}

// plugin runs a command of the release's plugin, and checks that its output contains words.
func (r release) plugin(t *testing.T, kubeconfig string, words string, args ...string) {
	t.Helper()
	args = append(args, "-n", shop, "--kubeconfig", kubeconfig)
	out, err := exec.CommandContext(t.Context(), filepath.Join(r.programs, "kubectl-memfit"), args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), words) {
		t.Errorf("kubectl memfit of %s %s: %v, want %q in\n%s", r.name, strings.Join(args, " "), err, words, out)
	}
}

// address returns a free port of this machine, with 127.0.0.1.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed in the next line
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// patience is long, because the machine may be busy.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: timed out after %s: %v", what, patience, err)
		}
	}
}
