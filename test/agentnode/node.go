// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package agentnode

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/fakeproc/procdir"
)

// Name is that of the node, and Namespace that of its pods.
const (
	Name      = "node-a"
	Namespace = "shop"
)

// Pod is a pod of one container.
type Pod struct {
	Name  string
	PIDs  []int // of its processes
	Usage memory.Bytes
	Limit memory.Bytes
	Kills int
}

// Node is an agent, its pods, and its API server.
type Node struct {
	dir    string // has what the kernel counts, as cgroup v1 shows it
	pods   []Pod
	server *server
	agent  *exec.Cmd
	logs   logs
}

// logs is what the agent reports.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Start runs an agent, a program of cmd/agent, at tier See. dir is a folder for this node alone.
func Start(ctx context.Context, agent, dir string, pods ...Pod) (*Node, error) {
	n := &Node{dir: dir, pods: pods}
	proc := filepath.Join(dir, "proc")
	if err := os.Mkdir(proc, 0o755); err != nil {
		return nil, err
	}
	for i := range pods {
		if err := n.count(i); err != nil {
			return nil, err
		}
		for _, pid := range pods[i].PIDs { // the kernel has them in other cgroups
			of := procdir.Cgroup(string(uidOf(i)), instanceOf(i))
			if err := procdir.Add(proc, pid, pid, of); err != nil {
				return nil, err
			}
		}
	}
	return n, n.start(ctx, agent, "--proc-root="+proc)
}

// StartReal is Start for pods whose containers have cgroups of the kernel's, in which their processes run already.
func StartReal(ctx context.Context, agent string, c *Cgroups, pods ...Pod) (*Node, error) {
	n := &Node{dir: c.Root, pods: pods}
	return n, n.start(ctx, agent)
}

func (n *Node) start(ctx context.Context, agent string, flags ...string) error {
	var told []corev1.Pod
	for i := range n.pods {
		told = append(told, n.told(i))
	}
	var err error
	if n.server, err = serve(told); err != nil {
		return err
	}
	n.agent = exec.CommandContext(ctx, agent, append(flags, "--tier=see", "--node-name="+Name, "--cgroup-root="+n.dir,
		"--bind-address=127.0.0.1:0", "--api-server="+n.server.url)...)
	n.agent.Stderr, n.agent.Stdout = &n.logs, &n.logs
	if err := n.agent.Start(); err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	return nil
}

// Stop ends the agent and the API server, where they were started.
func (n *Node) Stop() {
	if n.agent != nil && n.agent.Process != nil {
		_ = n.agent.Process.Kill()
		_ = n.agent.Wait()
	}
	if n.server != nil {
		_ = n.server.http.Close()
	}
}

// PID is that of the agent.
func (n *Node) PID() int { return n.agent.Process.Pid }

// Logs is what the agent has said so far.
func (n *Node) Logs() []byte {
	n.logs.mu.Lock()
	defer n.logs.mu.Unlock()
	return bytes.Clone(n.logs.text.Bytes())
}

// Requests are the writes that the agent has sent, as they came: addresses, headers and bodies. writes is their number.
func (n *Node) Requests() (text []byte, writes int) {
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	return bytes.Clone(n.server.requests), n.server.writes
}

// Snapshot is what the agent wrote last of a pod; false: nothing yet.
func (n *Node) Snapshot(pod string) (v1alpha1.MemorySnapshotStatus, bool) {
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	s, ok := n.server.written[pod]
	return s, ok
}

// Set changes what the kernel counts for the pod of that index.
func (n *Node) Set(i int, usage memory.Bytes, kills int) error {
	n.pods[i].Usage, n.pods[i].Kills = usage, kills
	return n.count(i)
}

func uidOf(i int) types.UID { return types.UID(fmt.Sprintf("254a8dbd-72d3-46e9-bb4e-%012d", i)) }

// dirOf is where the kubelet puts the cgroup of a pod's container.
func dirOf(i int) string {
	return filepath.Join("kubepods", "burstable", "pod"+string(uidOf(i)), instanceOf(i))
}

// instanceOf is the ID of a pod's container.
func instanceOf(i int) string { return fmt.Sprintf("%064x", i+1) }

// told is a pod as the API server has it.
func (n *Node) told(i int) corev1.Pod {
	return corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: n.pods[i].Name, UID: uidOf(i)},
		Spec:       corev1.PodSpec{NodeName: Name, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: "containerd://" + instanceOf(i)},
		}},
	}
}

// count writes the files of a container's cgroup and of its pod's.
func (n *Node) count(i int) error {
	p := &n.pods[i]
	at := filepath.Join(n.dir, "memory", dirOf(i))
	pod := filepath.Dir(at)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	var procs strings.Builder
	for _, pid := range p.PIDs {
		fmt.Fprintln(&procs, pid)
	}
	number := func(b memory.Bytes) string { return strconv.FormatInt(int64(b), 10) + "\n" }
	for _, file := range []struct{ name, text string }{
		{filepath.Join(n.dir, "memory", "memory.stat"), "total_rss 0\n"},
		{filepath.Join(pod, "memory.limit_in_bytes"), number(p.Limit)},
		{filepath.Join(pod, "memory.usage_in_bytes"), number(p.Usage)},
		{filepath.Join(at, "memory.limit_in_bytes"), number(p.Limit)},
		{filepath.Join(at, "memory.usage_in_bytes"), number(p.Usage)},
		{filepath.Join(at, "memory.stat"), "total_rss " + number(p.Usage)},
		{filepath.Join(at, "cgroup.procs"), procs.String()},
		{filepath.Join(at, "memory.oom_control"), fmt.Sprintf("under_oom 0\noom_kill %d\n", p.Kills)},
	} {
		// in one step, because the agent reads meanwhile
		if err := os.WriteFile(file.name+".new", []byte(file.text), 0o600); err != nil {
			return err
		}
		if err := os.Rename(file.name+".new", file.name); err != nil {
			return err
		}
	}
	return nil
}

// Wait asks until it is so, or until the time is over.
func Wait(ctx context.Context, most time.Duration, so func() bool) bool {
	for deadline := time.Now().Add(most); ; {
		if so() {
			return true
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}
