// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memfit/memfit/test/tree"
)

// replica runs the manager as a kubelet does: when the process exits, it is restarted after 10 s, then 20 s, and so on
// up to 5 minutes.
type replica struct {
	name          string
	gate          *gate
	health        string
	metrics       string
	webhook       string
	certificates  string
	log           string
	args, environ []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	down bool // stopped: not to be restarted
	// exits are the times at which it exited by itself.
	exits  []time.Time
	killed bool
	// peak is the highest memory of all its processes, in bytes.
	peak int64
}

// buildManager compiles the manager once.
var buildManager = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("memfit-chaos-manager-%d", os.Getpid()))
	cmd := exec.Command("go", "build", "-o", path, "./cmd/manager")
	cmd.Dir = tree.Root()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the manager: %w: %s", err, out)
	}
	return path, nil
})

func (w *world) newReplica(t *testing.T, name string, args ...string) *replica {
	t.Helper()
	r := &replica{
		name: name, gate: newGate(t, w.plane.config, w.plane.authority.pair(t)),
		health: "127.0.0.1:" + strconv.Itoa(freePort(t)), metrics: "127.0.0.1:" + strconv.Itoa(freePort(t)),
		webhook: "127.0.0.1:" + strconv.Itoa(freePort(t)), certificates: w.certificates,
		log: filepath.Join(w.plane.dir, name+".log"),
	}
	kubeconfig := filepath.Join(w.plane.dir, name+".kubeconfig")
	writeKubeconfig(t, kubeconfig, r.gate.url, w.plane.authority.pem)
	_, port, _ := strings.Cut(r.webhook, ":")
	r.args = append([]string{
		"--leader-elect", "--health-probe-bind-address=" + r.health, "--metrics-bind-address=" + r.metrics,
		"--metrics-secure=false", "--webhook-port=" + port, "--webhook-cert-path=" + r.certificates,
		"--usage-interval=2s", "--kill-counters-interval=10s", "--usage-service-account=",
		"--kubelet-ca-file=" + filepath.Join(w.plane.dir, "ca.crt"),
	}, args...)
	r.environ = []string{
		"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=memfit-system", "HOME=" + w.plane.dir, "PATH=" + os.Getenv("PATH"),
		"GOMEMLIMIT=483183820", // as in config/manager/deployment.yaml
	}
	t.Cleanup(r.stop)
	return r
}

// start runs the manager and keeps it running.
func (r *replica) start(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		return
	}
	r.down = false
	if err := r.launch(); err != nil {
		t.Fatal(err)
	}
}

func (r *replica) launch() error {
	binary, err := buildManager()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(binary, r.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = r.environ, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.cmd, r.killed = cmd, false
	ended := make(chan struct{})
	go func() {
		r.follow(cmd, ended)
	}()
	go r.watch(cmd, ended)
	return nil
}

// watch kills a process that fails the probes of config/manager/deployment.yaml.
func (r *replica) watch(cmd *exec.Cmd, ended chan struct{}) {
	started, failures := false, 0
	for {
		pause, most := 2*time.Second, 30
		if started {
			pause, most = 20*time.Second, 3
		}
		select {
		case <-ended:
			return
		case <-time.After(pause):
		}
		if _, err := get(http.DefaultClient, "http://"+r.health+"/healthz"); err == nil {
			started, failures = true, 0
		} else if failures++; failures >= most {
			_ = cmd.Process.Kill()
			return
		}
	}
}

// follow waits until a process has exited and starts the next, as a kubelet does.
func (r *replica) follow(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait()
	close(ended)
	r.mu.Lock()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = max(r.peak, usage.Maxrss<<10)
	}
	r.cmd = nil
	if r.down {
		r.mu.Unlock()
		return
	}
	wait := time.Second // killed, like a deleted pod, whose replacement starts without back-off
	if !r.killed {
		r.exits = append(r.exits, time.Now())
		wait = min(10*time.Second<<(len(r.exits)-1), 5*time.Minute)
	}
	r.mu.Unlock()
	time.Sleep(wait)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.down && r.cmd == nil {
		_ = r.launch()
	}
}

// kill kills the process; another starts after a second.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = true
	r.signal(syscall.SIGKILL)
}

// stop kills the process, and none starts again.
func (r *replica) stop() {
	r.mu.Lock()
	r.down = true
	r.signal(syscall.SIGKILL)
	r.mu.Unlock()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		gone := r.cmd == nil
		r.mu.Unlock()
		if gone {
			return
		}
	}
}

// pause and resume stop and continue the process, like the migration of a virtual machine.
func (r *replica) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal(syscall.SIGSTOP)
}

func (r *replica) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal(syscall.SIGCONT)
}

func (r *replica) signal(s syscall.Signal) {
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(s)
	}
}

func (r *replica) ready() bool {
	_, err := get(http.DefaultClient, "http://"+r.health+"/readyz")
	return err == nil
}

// leads reports whether the replica believes that it is the leader.
func (r *replica) leads() bool {
	text, err := get(http.DefaultClient, "http://"+r.metrics+"/metrics")
	return err == nil && strings.Contains(text, `leader_election_master_status{name="manager.memfit.dev"} 1`)
}

// ended returns how often it exited by itself.
func (r *replica) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.exits)
}

// logText returns the log so far.
func (r *replica) logText() string {
	text, _ := os.ReadFile(r.log)
	return string(text)
}

// memory returns the current memory of the process and the peak of all processes, in bytes.
func (r *replica) memory() (now, peak int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil && r.cmd.Process != nil {
		now = statusOf(r.cmd.Process.Pid, "VmRSS:")
		r.peak = max(r.peak, statusOf(r.cmd.Process.Pid, "VmHWM:"))
	}
	return now, r.peak
}

// statusOf returns a value of /proc/PID/status in bytes, or 0 if it is missing.
func statusOf(pid int, name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if after, found := strings.CutPrefix(line, name); found {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
