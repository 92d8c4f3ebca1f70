// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && agent

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// planted is a text in the memory, names and environment of the hostile program, which no report may contain.
const planted = "hunter2-planted"

// hostile is a program that makes its inspection as hard as an unprivileged program can: almost as many mappings as
// Linux allows; line ends and escapes in its name and in that of a mapped library; glibc heap headers that point in
// circles; a huge file of JVM counters; a thread that constantly maps and unmaps memory; children that exit
// immediately, and one that executes a new program five times a second. Like freesAndTrims, it holds freed memory,
// trims on request and answers with the result.
const hostile = `import ctypes, json, mmap, os, struct, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p]
NONE, R, RW, ANON, FIXED, PAGE, HEAP = 0, 1, 3, 0x22, 0x100010, 4096, 64 << 20
secret = b"` + planted + `"
buffer = ctypes.create_string_buffer(b"x) S 1\n\x1b[31m")
libc.prctl(15, ctypes.addressof(buffer), None, 0, None)
name = "/tmp/libjvm.so\n7f0000000000-7f0040000000 rw-p 00000000 00:00 0 " + secret.decode()
with open(name, "wb") as f: f.write(os.urandom(16 * PAGE))
with open(name, "r+b") as f: library = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)
os.makedirs("/tmp/hsperfdata_root", exist_ok=True)
with open("/tmp/hsperfdata_root/%d" % os.getpid(), "wb") as f:
    f.write(b"\xca\xfe\xc0\xc0" + secret * 100)
    f.truncate(1 << 34)
for i in range(64):
    at = 0x6000_0000_0000 + i * HEAP
    if libc.mmap(at, 16 * PAGE, RW, ANON | FIXED, -1, 0) != at: continue
    arena, other = at + 0x30, 0x6000_0000_0000 + (i + 1) % 64 * HEAP
    words = [arena, other, 16 * PAGE, PAGE << 4, PAGE, 0] + [0, arena, other + 0x30, PAGE + at, 16 * PAGE] * 40
    ctypes.memmove(at, struct.pack("<%dQ" % len(words), *words) + secret, 8 * len(words) + len(secret))
    ctypes.memmove(at + PAGE, struct.pack("<QQ", 0, 15 * PAGE | 5), 16)
held = [bytearray(b"x" * 65536) for _ in range(1024)]
held = [held[i] for i in range(0, 1024, 48)]
many = 60000
base = libc.mmap(None, many * PAGE, RW, ANON, -1, 0)
label = ctypes.create_string_buffer(b"glibc: malloc arena")
for i in range(0, many, 2):
    libc.mprotect(base + PAGE * i, PAGE, NONE)
for i in range(1, 2000, 2):
    ctypes.memmove(base + PAGE * i, struct.pack("<QQ", 0, PAGE | 2), 16)
    libc.prctl(0x53564d41, 0, base + PAGE * i, PAGE, ctypes.addressof(label))
def remaps():
    while True:
        at = libc.mmap(None, 8 << 20, RW, ANON, -1, 0)
        for i in range(0, 8 << 20, 1 << 18): ctypes.memmove(at + i, secret, len(secret))
        libc.munmap(at, 8 << 20)
        time.sleep(0.002)
with open("/tmp/again", "w") as f: f.write("sleep 0.2\nexec sh /tmp/again " + secret.decode())
if os.fork() == 0: os.execvp("sh", ["sh", "/tmp/again"])
if os.fork() == 0:
    while True:
        child = os.fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.05)
threading.Thread(target=remaps, daemon=True).start()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        before = resident()
        if self.path == "/trim": libc.malloc_trim(0)
        mappings = sum(1 for _ in open("/proc/self/maps"))
        body = json.dumps({"before": before, "after": resident(), "mappings": mappings}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
HTTPServer(("", 8080), Handler).serve_forever()`

// answers is what these programs report about themselves.
type answers struct {
	Before, After memory.Bytes
	Mappings      int
}

func getAnswers(ctx context.Context, g Gomega, pod *corev1.Pod, path string) (a answers) {
	text, err := getFrom(ctx, pod, path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal([]byte(text), &a)).To(Succeed())
	return a
}

// inspectNow requests an inspection of a pod and waits for its result.
func inspectNow(ctx context.Context, pod *corev1.Pod) *v1alpha1.ContainerSnapshot {
	GinkgoHelper()
	asked := time.Now().Truncate(time.Second)
	patch := `{"metadata":{"annotations":{"` + v1alpha1.InspectAnnotation + `":"` + asked.Format(time.RFC3339) + `"}}}`
	Expect(k8s.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	var found *v1alpha1.ContainerSnapshot
	Eventually(func(g Gomega) {
		found = snapshotOf(ctx, pod)
		g.Expect(found).NotTo(BeNil())
		g.Expect(found.Memory).NotTo(BeNil(), found.InspectionMessage)
		g.Expect(found.Memory.Time.Time).To(BeTemporally(">=", asked))
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	return found
}

// startNeighbor starts a pod with much freed memory, and returns it after the agent has inspected it.
func startNeighbor(ctx context.Context, namespace string) *corev1.Pod {
	GinkgoHelper()
	labels := map[string]string{"app": "neighbor"}
	command := []string{"python3", "-c", freesAndTrims}
	d := workload(namespace, pythonImage, "256Mi", command, func(d *appsv1.Deployment) {
		d.Name = "neighbor"
		d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels
	})
	Expect(k8s.Create(ctx, d)).To(Succeed())
	var list corev1.PodList
	Eventually(func(g Gomega) {
		g.Expect(k8s.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(labels))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
	}).WithContext(ctx).Should(Succeed())
	inspected(ctx, &list.Items[0], func(g Gomega, s *v1alpha1.ContainerSnapshot) {
		g.Expect(trimGain(s.Memory.Savings)).To(BeNumerically(">", 64*memory.MiB))
	})
	return &list.Items[0]
}

// agentsRestarts returns the sum of the agents' restart counts.
func agentsRestarts(ctx context.Context) (n int32) {
	GinkgoHelper()
	var agents corev1.PodList
	Expect(k8s.List(ctx, &agents, client.InNamespace(agentNamespace))).To(Succeed())
	Expect(agents.Items).NotTo(BeEmpty())
	for i := range agents.Items {
		n += restarts(&agents.Items[i])
	}
	return n
}

var _ = Describe("an agent and a program", Label("agent"), func() {
	namespace := inNamespace()
	recommend := v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend}}

	It("that is hostile: reports about it and its neighbor stay correct, in bounded time", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		before := agentsRestarts(ctx)
		neighbor := startNeighbor(ctx, *namespace)
		command := []string{"python3", "-c", hostile}
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "384Mi", command, func(d *appsv1.Deployment) {
			annotated(d)
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: planted}}
		}))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		var reported answers
		Eventually(func(g Gomega) { reported = getAnswers(ctx, g, pod, "/") }).WithContext(ctx).Should(Succeed())
		Expect(reported.Mappings).To(BeNumerically(">", 60000))

		asked := time.Now()
		found := inspectNow(ctx, pod)
		GinkgoWriter.Printf("%d mappings, inspected %s after the request: coverage %d %%, %d processes, %s resident: %s\n",
			reported.Mappings, time.Since(asked).Round(time.Second), found.Memory.CoveragePercent, found.Memory.Processes,
			found.Memory.Resident.String(), found.InspectionMessage)
		Expect(found.Memory.Resident.Cmp(*sumOfParts(found.Memory))).To(BeZero(), "parts add up")
		Expect(memory.FromQuantity(found.Memory.Resident)).To(BeNumerically(">=", reported.Before-16*memory.MiB))
		for _, p := range found.Memory.Parts {
			if p.Free != nil {
				Expect(p.Free.Cmp(p.Resident)).To(BeNumerically("<=", 0), p.Name)
			}
		}
		if predicted := trimGain(found.Memory.Savings); found.Memory.CoveragePercent >= 95 && predicted >= 0 {
			trimmed := getAnswers(ctx, Default, pod, "/trim")
			freed := trimmed.Before - trimmed.After
			GinkgoWriter.Printf("predicted %s, freed %s\n", predicted, freed)
			Expect(freed).To(BeNumerically("~", predicted, trimmed.Before/50+9*memory.MiB), "plus the 8 MiB of remaps")
		}

		By("reporting no text that the program has written")
		var whole v1alpha1.MemorySnapshot
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), &whole)).To(Succeed())
		text, err := json.Marshal(whole.Status)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring(planted))
		Expect(string(text)).NotTo(MatchRegexp(`\\n|\\u001b`))
		for _, printed := range []string{
			plugin(ctx, "why", "pod/"+pod.Name, "-n", *namespace), plugin(ctx, "top", "-n", *namespace),
		} {
			Expect(printed).NotTo(ContainSubstring(planted))
			Expect(strings.IndexFunc(printed, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })).To(Equal(-1))
		}

		By("reading its neighbor without interference")
		// The agent serves a request after at most twenty times the duration of the previous inspection.
		again := inspectNow(ctx, neighbor)
		Expect(again.Memory.CoveragePercent).To(BeNumerically(">=", 95))
		Expect(trimGain(again.Memory.Savings)).To(BeNumerically(">", 64*memory.MiB))
		Expect(agentsRestarts(ctx)).To(Equal(before), "the agent ended")
	}, NodeTimeout(4*later))

	It("of many processes: all count, and those that were not inspected are reported", func(ctx SpecContext) {
		const children = 44
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		command := []string{"python3", "-c", manyProcesses}
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "512Mi", command, annotated))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		var reported answers
		Eventually(func(g Gomega) { reported = getAnswers(ctx, g, pod, "/") }).WithContext(ctx).Should(Succeed())
		By("inspecting again until the 32 largest are read, which a busy machine may delay")
		var found *v1alpha1.ContainerSnapshot
		Eventually(func() string {
			found = inspectNow(ctx, pod)
			return found.InspectionMessage
		}).WithContext(ctx).Should(MatchRegexp(
			`^13 of 45 processes, with .* resident, could not be read: only the 32 largest processes are inspected$`,
		))
		GinkgoWriter.Printf("resident: %s by the program, %s by the agent, of which %s unexplained, coverage %d %%: %s\n",
			reported.Before, found.Memory.Resident.String(), found.Memory.Unexplained.String(), found.Memory.CoveragePercent,
			found.InspectionMessage)
		Expect(found.Memory.Processes).To(BeEquivalentTo(children + 1))
		Expect(memory.FromQuantity(found.Memory.Resident)).To(BeNumerically("~", reported.Before, reported.Before.Percent(3)))
		Expect(found.Memory.Resident.Cmp(*sumOfParts(found.Memory))).To(BeZero(), "parts add up")
		// Each of the 13 smallest holds 2 MiB of its own, besides shared memory.
		Expect(memory.FromQuantity(found.Memory.Unexplained)).To(BeNumerically(">", 13*2*memory.MiB))
		Expect(found.Memory.CoveragePercent).To(And(BeNumerically(">", 0), BeNumerically("<", 95)))
	}, NodeTimeout(2*later))
})

// manyProcesses is a program with 44 children, of which 22 hold 3 MiB each and 22 hold 2 MiB. When all hold their
// memory, it answers with the sum of their resident memory and its own.
const manyProcesses = `import json, os, time
from http.server import BaseHTTPRequestHandler, HTTPServer
children = []
for i in range(44):
    done, tell = os.pipe()
    child = os.fork()
    if child == 0:
        held = bytearray((3 if i < 22 else 2) << 20)
        for at in range(0, len(held), 4096): held[at] = 1
        os.write(tell, b".")
        while True: time.sleep(3600)
    os.read(done, 1)
    children.append(child)
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        rss = sum(int(open("/proc/%d/statm" % p).read().split()[1]) for p in children + [os.getpid()])
        body = json.dumps({"before": rss * 4096}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
HTTPServer(("", 8080), Handler).serve_forever()`
