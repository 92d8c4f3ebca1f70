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

// Name is the name of the node, and Namespace the namespace of its pods.
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
	dir    string // with the files of cgroup v1
	pods   []Pod
	server *server
	agent  *exec.Cmd
	logs   logs
}

// logs collects the agent's log.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Start runs an agent at tier See; agent is the path of a program of cmd/agent. dir is an empty directory.
func Start(ctx context.Context, agent, dir string, pods ...Pod) (*Node, error) {
	n := &Node{dir: dir, pods: pods}
	proc := filepath.Join(dir, "proc")
	if err := os.Mkdir(proc, 0o755); err != nil {
		return nil, err
	}
	for i := range pods {
		if err := n.writeCgroup(i); err != nil {
			return nil, err
		}
		for _, pid := range pods[i].PIDs { // replaces the processes' real cgroups
			of := procdir.Cgroup(string(uidOf(i)), instanceOf(i))
			if err := procdir.Add(proc, pid, pid, of); err != nil {
				return nil, err
			}
		}
	}
	return n, n.start(ctx, agent, "--proc-root="+proc)
}

// StartReal is like Start, for pods whose processes already run in real cgroups.
func StartReal(ctx context.Context, agent string, c *Cgroups, pods ...Pod) (*Node, error) {
	n := &Node{dir: c.Root, pods: pods}
	return n, n.start(ctx, agent)
}

func (n *Node) start(ctx context.Context, agent string, flags ...string) error {
	var pods []corev1.Pod
	for i := range n.pods {
		pods = append(pods, n.podObject(i))
	}
	var err error
	if n.server, err = serve(pods); err != nil {
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

// Stop stops the agent and the API server, if they were started.
func (n *Node) Stop() {
	if n.agent != nil && n.agent.Process != nil {
		_ = n.agent.Process.Kill()
		_ = n.agent.Wait()
	}
	if n.server != nil {
		_ = n.server.http.Close()
	}
}

// PID returns the agent's process ID.
func (n *Node) PID() int { return n.agent.Process.Pid }

// Logs returns the agent's log so far.
func (n *Node) Logs() []byte {
	n.logs.mu.Lock()
	defer n.logs.mu.Unlock()
	return bytes.Clone(n.logs.text.Bytes())
}

// Requests returns the agent's writes as they were received: URLs, headers and bodies. writes is their number.
func (n *Node) Requests() (text []byte, writes int) {
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	return bytes.Clone(n.server.requests), n.server.writes
}

// Snapshot returns the agent's last snapshot of a pod, or false if there is none yet.
func (n *Node) Snapshot(pod string) (v1alpha1.MemorySnapshotStatus, bool) {
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	s, ok := n.server.written[pod]
	return s, ok
}

// Set changes the usage and the kill counter of the pod with the index.
func (n *Node) Set(i int, usage memory.Bytes, kills int) error {
	n.pods[i].Usage, n.pods[i].Kills = usage, kills
	return n.writeCgroup(i)
}

func uidOf(i int) types.UID { return types.UID(fmt.Sprintf("254a8dbd-72d3-46e9-bb4e-%012d", i)) }

// dirOf returns the kubelet's path of the cgroup of a pod's container.
func dirOf(i int) string {
	return filepath.Join("kubepods", "burstable", "pod"+string(uidOf(i)), instanceOf(i))
}

// instanceOf returns the ID of a pod's container.
func instanceOf(i int) string { return fmt.Sprintf("%064x", i+1) }

// podObject returns a pod for the API server.
func (n *Node) podObject(i int) corev1.Pod {
	return corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: n.pods[i].Name, UID: uidOf(i)},
		Spec:       corev1.PodSpec{NodeName: Name, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: "containerd://" + instanceOf(i)},
		}},
	}
}

// writeCgroup writes the cgroup files of a container and of its pod.
func (n *Node) writeCgroup(i int) error {
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
		// atomically, because the agent reads meanwhile
		if err := os.WriteFile(file.name+".new", []byte(file.text), 0o600); err != nil {
			return err
		}
		if err := os.Rename(file.name+".new", file.name); err != nil {
			return err
		}
	}
	return nil
}

// Wait calls done until it returns true. Wait returns false at the limit or when ctx ends.
func Wait(ctx context.Context, limit time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(limit); ; {
		if done() {
			return true
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}
