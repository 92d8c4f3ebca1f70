// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/tree"
)

// runAsManager makes this test binary behave as the manager, so that tests can start it as a process and kill it.
const runAsManager = "MEMFIT_TEST_RUN_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(runAsManager) != "" {
		main()
		return
	}
	code := m.Run()
	if common.cluster != nil {
		if err := common.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// cluster is a namespace of a real API server that calls a webhook on this machine.
type cluster struct {
	client     client.Client
	scheme     *runtime.Scheme
	kubeconfig string // what the manager is started with
	webhook    *envtest.WebhookInstallOptions
	namespace  string
	admin      []byte // a kubeconfig
	stop       func() error
}

// newCluster starts an API server for one test.
func newCluster(t *testing.T, edits ...func(*envtest.Environment)) *cluster {
	t.Helper()
	c, err := startCluster(edits...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return c.of(t, "shop")
}

// common is the API server of all tests that need no flag or object of their own in theirs.
var common struct {
	sync.Once
	*cluster
	err  error
	uses int
}

// commonCluster is a namespace of that API server that no other test has.
func commonCluster(t *testing.T) *cluster {
	t.Helper()
	common.Do(func() { common.cluster, common.err = startCluster() })
	if common.err != nil {
		t.Fatal(common.err)
	}
	common.uses++
	return common.of(t, fmt.Sprintf("shop-%d", common.uses))
}

func startCluster(edits ...func(*envtest.Environment)) (*cluster, error) {
	c := &cluster{scheme: scheme()}
	var env *envtest.Environment
	config, stop, err := expect.StartAPIServer(append(edits, func(e *envtest.Environment) {
		env = e
		e.WebhookInstallOptions.Paths = []string{filepath.Join(tree.Root(), "config", "webhook", "manifests.yaml")}
	})...)
	if err != nil {
		return nil, err
	}
	c.webhook, c.admin, c.stop = &env.WebhookInstallOptions, env.KubeConfig, stop
	c.client, err = client.New(config, client.Options{Scheme: c.scheme})
	return c, err
}

// of is the cluster for one test.
func (c *cluster) of(t *testing.T, namespace string) *cluster {
	t.Helper()
	own := *c
	own.namespace, own.kubeconfig = namespace, filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(own.kubeconfig, own.admin, 0o600); err != nil {
		t.Fatal(err)
	}
	return &own
}

// process is a manager that runs.
type process struct {
	*exec.Cmd
	health, metrics string
	output          *tail
}

// start runs the manager, as the real program, and returns without waiting for it.
func (c *cluster) start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{health: address(t), metrics: address(t), output: &tail{}}
	p.Cmd = exec.Command(os.Args[0], append([]string{
		"--health-probe-bind-address=" + p.health, "--metrics-bind-address=" + p.metrics, "--metrics-secure=false",
		fmt.Sprintf("--webhook-port=%d", c.webhook.LocalServingPort), "--webhook-cert-path=" + c.webhook.LocalServingCertDir,
		"--usage-interval=0", "--leader-elect=false",
	}, args...)...)
	p.Env = append(os.Environ(), runAsManager+"=1", "KUBECONFIG="+c.kubeconfig, "POD_NAMESPACE=memfit-system")
	p.Stdout, p.Stderr = p.output, p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the manager's log ends:\n%s", p.output)
		}
	})
	return p
}

// kill ends the process as the kernel would: it gets no chance to write anything.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// ready waits until /readyz says so.
func (p *process) ready(t *testing.T) {
	t.Helper()
	eventually(t, 60*time.Second, func() error {
		_, err := get("http://" + p.health + "/readyz")
		return err
	})
}

// eventually repeats check until it returns nil.
func eventually(t *testing.T, limit time.Duration, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %v", limit, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func get(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// address is a free port on this machine.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed in the next line
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// tail keeps the last of what a process wrote.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buf.Len() > 1<<20 {
		w.buf.Reset()
	}
	return w.buf.Write(b)
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.buf.String()
	return s[max(0, len(s)-8000):]
}
