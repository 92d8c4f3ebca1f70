// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cgroup2

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/memfit/memfit/test/labnode"
)

// Timeout and polling interval for a busy two-core node. No test measures speed with them.
const (
	soon     = 2 * time.Minute
	interval = 500 * time.Millisecond
)

const image = "memfit.test/python:3.11"

// node is the node under test.
type node struct {
	*WithT

	t         *testing.T
	clients   kubernetes.Interface
	name      string
	namespace string
	observer  string // the name of the pod of observe
}

// newNode finds the node and creates a namespace for the test. It skips the test if there is no such node, or if suits
// rejects the node's variant.
func newNode(t *testing.T, variant string, suits func(labnode.Kubelet) bool) *node {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Skipf("no cluster, run make test-cgroup2: %v", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{WithT: NewWithT(t), t: t, clients: clients}
	n.SetDefaultEventuallyTimeout(soon)
	n.SetDefaultEventuallyPollingInterval(interval)
	var kubelet labnode.Kubelet
	n.name, kubelet, err = labnode.Find(t.Context(), clients, labnode.Cgroup2)
	n.Expect(err).NotTo(HaveOccurred())
	if n.name == "" {
		t.Skip("the cluster has no node with cgroup v2: make lab-up NODE=cgroup2")
	}
	if !suits(kubelet) {
		t.Skipf("needs a node with %s", variant)
	}
	n.makeNamespace()
	n.observer = n.start(observe()).Name
	return n
}

func (n *node) makeNamespace() {
	n.t.Helper()
	spaces := n.clients.CoreV1().Namespaces()
	ns, err := spaces.Create(n.t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "cgroup2-"},
	}, metav1.CreateOptions{})
	n.Expect(err).NotTo(HaveOccurred())
	n.namespace = ns.Name
	n.t.Cleanup(func() {
		if err := spaces.Delete(context.Background(), n.namespace, metav1.DeleteOptions{}); err != nil {
			n.t.Error(err)
		}
	})
}

// kubeletGet reads a path of the kubelet's API.
func (n *node) kubeletGet(path string) []byte {
	n.t.Helper()
	out, err := n.clients.CoreV1().RESTClient().Get().
		Resource("nodes").Name(n.name).SubResource("proxy").Suffix(path).DoRaw(n.t.Context())
	n.Expect(err).NotTo(HaveOccurred())
	return out
}

// observer is a server for all files of the node's cgroups and for the kernel's log.
const observer = `import http.server, os
def kernel_log():
    fd, out = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK), b''
    while True:
        try: out += os.read(fd, 8192)
        except BlockingIOError: return out
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try: data = kernel_log() if self.path == '/kernel-log' else open('/node' + self.path, 'rb').read()
        except OSError as e: return self.send_error(404, str(e))
        self.send_response(200); self.send_header('Content-Length', str(len(data))); self.end_headers()
        self.wfile.write(data)
http.server.ThreadingHTTPServer(('', 8000), Handler).serve_forever()`

// observe returns the pod of observer.
func observe() *corev1.Pod {
	pod := newPod("observer", "256Mi", []string{"python3", "-c", observer})
	privileged, root := true, int64(0)
	c := &pod.Spec.Containers[0]
	c.SecurityContext = &corev1.SecurityContext{Privileged: &privileged, RunAsUser: &root}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "cgroups", MountPath: "/node"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "cgroups", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/sys/fs/cgroup"},
	}}}
	return pod
}

// newPod returns a burstable pod of one container for the node, with a directory /state that survives container
// restarts.
func newPod(name, limit string, command []string) *corev1.Pod {
	grace := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "app", Image: image, ImagePullPolicy: corev1.PullNever, Command: command,
				ResizePolicy: []corev1.ContainerResizePolicy{
					{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.NotRequired},
				},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "state", MountPath: "/state"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	labnode.Place(&pod.Spec, labnode.Cgroup2)
	return pod
}

// start creates the pod and waits until it runs.
func (n *node) start(pod *corev1.Pod) *corev1.Pod {
	n.t.Helper()
	made, err := n.clients.CoreV1().Pods(n.namespace).Create(n.t.Context(), pod, metav1.CreateOptions{})
	n.Expect(err).NotTo(HaveOccurred())
	n.Eventually(func() corev1.PodPhase { return n.pod(made.Name).Status.Phase }).Should(Equal(corev1.PodRunning))
	return made
}

func (n *node) pod(name string) *corev1.Pod {
	n.t.Helper()
	pod, err := n.clients.CoreV1().Pods(n.namespace).Get(n.t.Context(), name, metav1.GetOptions{})
	n.Expect(err).NotTo(HaveOccurred())
	return pod
}

// status returns the status of the pod's container, or an empty one if it has none yet.
func (n *node) status(name string) corev1.ContainerStatus {
	n.t.Helper()
	if all := n.pod(name).Status.ContainerStatuses; len(all) == 1 {
		return all[0]
	}
	return corev1.ContainerStatus{}
}

func (n *node) logs(name string) string {
	n.t.Helper()
	out, err := n.clients.CoreV1().Pods(n.namespace).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(n.t.Context())
	if err != nil {
		return "" // not started yet
	}
	return string(out)
}

// read reads a file of the node's cgroups, or kernel-log.
func (n *node) read(path string) string {
	n.t.Helper()
	var out []byte
	n.Eventually(func() (err error) { // the observer may not listen yet
		out, err = n.clients.CoreV1().RESTClient().Get().Namespace(n.namespace).
			Resource("pods").Name(n.observer + ":8000").SubResource("proxy").Suffix(path).DoRaw(n.t.Context())
		return err
	}).Should(Succeed(), path)
	return string(out)
}

func podCgroup(pod *corev1.Pod) string { return "kubepods/burstable/pod" + string(pod.UID) }

// containerCgroup returns the path of the running container's cgroup.
func (n *node) containerCgroup(pod *corev1.Pod) string {
	n.t.Helper()
	_, id, ok := strings.Cut(n.status(pod.Name).ContainerID, "://")
	n.Expect(ok).To(BeTrue(), "the container has an id")
	return podCgroup(pod) + "/" + id
}

// counters reads a file of "name number" lines.
func (n *node) counters(path string) map[string]int {
	n.t.Helper()
	values := map[string]int{}
	for line := range strings.Lines(n.read(path)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.Atoi(number)
		n.Expect(err).NotTo(HaveOccurred(), line)
		values[name] = value
	}
	return values
}

func (n *node) number(path string) int64 {
	n.t.Helper()
	value, err := strconv.ParseInt(strings.TrimSpace(n.read(path)), 10, 64)
	n.Expect(err).NotTo(HaveOccurred(), path)
	return value
}

// metric returns the values of cAdvisor's series of the pod, by container; the pod's own series have the name "".
func (n *node) metric(name, pod string) map[string]float64 {
	n.t.Helper()
	values := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(n.kubeletGet("metrics/cadvisor"))); lines.Scan(); {
		labels, rest, ok := strings.Cut(strings.TrimPrefix(lines.Text(), name+"{"), "} ")
		if !ok || !strings.HasPrefix(lines.Text(), name+"{") ||
			!strings.Contains(labels, `pod="`+pod+`"`) || !strings.Contains(labels, `namespace="`+n.namespace+`"`) {
			continue
		}
		_, container, _ := strings.Cut(labels, `container="`)
		container, _, _ = strings.Cut(container, `"`)
		number, _, _ := strings.Cut(rest, " ")
		value, err := strconv.ParseFloat(number, 64)
		n.Expect(err).NotTo(HaveOccurred(), lines.Text())
		values[container] += value
	}
	return values
}

// summary is a container's entry in the kubelet's summary.
type summary struct {
	Name   string `json:"name"`
	Memory struct {
		PSI *struct {
			Full struct {
				Total int64 `json:"total"`
			} `json:"full"`
		} `json:"psi"`
	} `json:"memory"`
	Swap struct {
		SwapUsageBytes int64 `json:"swapUsageBytes"`
	} `json:"swap"`
}

func (n *node) summary(pod string) summary {
	n.t.Helper()
	var all struct {
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []summary
		}
	}
	n.Expect(json.Unmarshal(n.kubeletGet("stats/summary"), &all)).To(Succeed())
	for _, p := range all.Pods {
		if p.PodRef.Name == pod && p.PodRef.Namespace == n.namespace && len(p.Containers) == 1 {
			return p.Containers[0]
		}
	}
	return summary{}
}
