// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

const (
	image = "memfit.test/goprobe:dev"
	// before is how long a container runs before it grows, so that the agent and the leader know it.
	before = 20 * time.Second
	// every is the interval for reading a limit from this machine's cgroups.
	every = 5 * time.Millisecond
	// everyByAPI is the interval for reading a limit through the API server, for containers on the second node.
	everyByAPI = 100 * time.Millisecond
	// nodeLabel is the label with the kind of the lab's second node, and the key of its taint.
	nodeLabel = "memfit.dev/lab-node"
	// vpaArm is the arm in which VPA sizes the containers.
	vpaArm = "vpa"
)

// program is the program of one pod.
type program struct {
	name, kind string
	rate       int // MiB/s; 0: none
	limit      int // MiB
	level      int // MiB; its final size
	args       []string
	lasts      time.Duration
	// image and command replace goprobe; env applies to both.
	image   string
	command []string
	env     []corev1.EnvVar
}

// programsOf returns the programs, which are the same for all arms.
func programsOf(o *options) (all []program) {
	for _, kind := range o.kinds {
		for run := range o.runs {
			for i, limit := range o.limits {
				switch kind {
				case "ramp":
					for j, rate := range o.rates {
						factor := o.factors[(run+i+j)%len(o.factors)]
						all = append(all, ramp(rate, limit, int(float64(limit)*factor), run, o.hold))
					}
				case "sawtooth":
					all = append(all, sawtooth(limit, run, o.hold))
				case "leak":
					all = append(all, leak(limit, run))
				case "heap":
					all = append(all, heaps(limit, run, o.heap)...)
				}
			}
		}
	}
	return all
}

func ramp(rate, limit, level, run int, hold time.Duration) program {
	over := time.Duration(level) * time.Second / time.Duration(rate)
	return program{
		name: fmt.Sprintf("ramp-%d-%d-%d", rate, limit, run), kind: "ramp", rate: rate, limit: limit, level: level,
		args: []string{"-hold", fmt.Sprintf("%dMi", level), "-hold-over", over.String()}, lasts: over + hold,
		env: withoutGC,
	}
}

var withoutGC = []corev1.EnvVar{{Name: "GOGC", Value: "off"}}

// sawtooth repeatedly allocates and frees 10 % of the limit, up to about 97 %, like a garbage-collected heap near its
// cap. It first fills slowly, so that its start is not a ramp.
func sawtooth(limit, run int, hold time.Duration) program {
	return program{
		name: fmt.Sprintf("sawtooth-%d-%d", limit, run), kind: "sawtooth", limit: limit, level: limit * 97 / 100,
		args: []string{
			"-hold", fmt.Sprintf("%dMi", limit*85/100), "-hold-over", "30s",
			"-burst", fmt.Sprintf("%dMi", limit*10/100), "-burst-every", "5s", "-burst-for", "1s",
		},
		lasts: 30*time.Second + 4*hold, env: withoutGC,
	}
}

const (
	// nodeHeap keeps up to its argument of arrays of 1 MiB, and drops half of them whenever it has more.
	nodeHeap = `const keep = []; const most = Number(process.argv[1]);
		setInterval(() => { keep.push(new Array(131072).fill(1)); if (keep.length > most) keep.splice(0, most / 2); }, 25)`
	// javaHeap is the same for the JVM.
	javaHeap = `import java.util.*; public class Heap { public static void main(String[] a) throws Exception {
		int most = Integer.parseInt(a[0]); var keep = new ArrayDeque<byte[]>();
		for (;;) { var b = new byte[1 << 20]; Arrays.fill(b, (byte) 1); keep.add(b); Thread.sleep(25);
			if (keep.size() > most) for (int i = 0; i < most / 2; i++) keep.poll(); } } }`
)

// heaps returns programs with garbage-collected heaps, capped below the limit. Up to 45 % of the limit is live, and
// Node.js and the JVM allocate 40 MiB of new objects a second.
func heaps(limit, run int, lasts time.Duration) (all []program) {
	capMi, live := strconv.Itoa(limit*3/4), strconv.Itoa(limit*45/100)
	of := func(runtime string) program {
		return program{
			name: fmt.Sprintf("heap-%s-%d-%d", runtime, limit, run), kind: "heap", limit: limit, level: limit, lasts: lasts,
		}
	}
	node := of("node")
	node.image = "memfit.test/node:20"
	node.command = []string{"node", "--max-old-space-size=" + capMi, "-e", nodeHeap, live}
	goes := of("go")
	goes.args = []string{
		"-hold", live + "Mi", "-burst", fmt.Sprintf("%dMi", limit/5), "-burst-every", "3s", "-burst-for", "1s",
	}
	goes.env = []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.Itoa(limit*85/100) + "MiB"}}
	all = append(all, node, goes)
	if limit >= 512 { // the compiler of a single-file program needs that much
		jvm := of("jvm")
		jvm.image, jvm.env = "memfit.test/jdk:17", []corev1.EnvVar{{Name: "PROGRAM", Value: javaHeap}}
		jvm.command = []string{"sh", "-c", `printf %s "$PROGRAM" > /tmp/Heap.java && exec java -Xmx` + capMi +
			`m /tmp/Heap.java ` + live}
		all = append(all, jvm)
	}
	return all
}

// leak returns a program that grows by 5 % of the limit a second until it is killed.
func leak(limit, run int) program {
	rate := max(limit/20, 1)
	return program{
		name: fmt.Sprintf("leak-%d-%d", limit, run), kind: "leak", rate: rate, limit: limit, level: 1 << 20,
		args: []string{"-leak", fmt.Sprintf("%dMi", rate)}, lasts: 90 * time.Second, env: withoutGC,
	}
}

// prepare creates the namespace of an arm, and its profile.
func prepare(ctx context.Context, k8s client.Client, arm string) (string, error) {
	name := fmt.Sprintf("rescuebench-%s-%d", arm, time.Now().Unix()%100000)
	if err := k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return "", err
	}
	rescue := v1alpha1.RescueDisabled
	switch arm {
	case "nothing", vpaArm:
		return name, nil
	case "rescue":
		rescue = v1alpha1.RescueEnabled
	}
	p := &v1alpha1.MemoryProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "bench"},
		Spec: v1alpha1.MemoryProfileSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "rescuebench"}},
			Runtime:  v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative},
			Sizing:   v1alpha1.SizingSpec{Mode: v1alpha1.SizingInPlace, Rescue: rescue},
		},
	}
	if err := k8s.Create(ctx, p); err != nil {
		return "", err
	}
	time.Sleep(2 * time.Second) // until memfit knows the profile
	return name, nil
}

func remove(k8s client.Client, namespace string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// deploymentOf returns a Deployment of one pod on a node of the lab; "": its first node. The request equals the limit,
// so that VPA, which keeps their ratio, sets both to its recommendation.
func deploymentOf(namespace, node string, p *program) *appsv1.Deployment {
	command := p.command
	if command == nil {
		words := fmt.Sprintf("sleep %d; exec /goprobe %s", int(before.Seconds()), strings.Join(p.args, " "))
		command = []string{"sh", "-c", words}
	}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", p.limit))}
	labels := map[string]string{"app": "rescuebench", "program": p.name}
	var selector map[string]string
	var tolerations []corev1.Toleration
	if node != "" {
		selector = map[string]string{nodeLabel: node}
		tolerations = []corev1.Toleration{{Key: nodeLabel, Operator: corev1.TolerationOpExists}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)), NodeSelector: selector, Tolerations: tolerations,
					Containers: []corev1.Container{{
						Name: "app", Image: cmp.Or(p.image, image), ImagePullPolicy: corev1.PullNever, Command: command, Env: p.env,
						Resources: corev1.ResourceRequirements{Limits: memory, Requests: memory},
					}},
				},
			},
		},
	}
}

// awaitRunning returns the pod of a program once its container runs.
func awaitRunning(ctx context.Context, k8s client.Client, namespace string, p *program) (*corev1.Pod, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var pods corev1.PodList
		err := k8s.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"program": p.name})
		if err != nil {
			return nil, err
		}
		for i := range pods.Items {
			status := pods.Items[i].Status.ContainerStatuses
			if len(status) == 1 && status[0].State.Running != nil {
				return &pods.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("the pod of %s does not run", p.name)
}

// termination returns how a pod's container ended, or nil if it has not.
func termination(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	status := &pod.Status.ContainerStatuses[0]
	return cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
}

// runProgram runs one program in its own Deployment and follows its pod until its container or the program's time ends.
func runProgram(
	ctx context.Context, k8s client.Client, o *options, namespace, arm string, p *program,
) (result, error) {
	deployment := deploymentOf(namespace, o.node, p)
	r := result{program: *p, peak: 0}
	if err := k8s.Create(ctx, deployment); err != nil {
		return r, fmt.Errorf("creating Deployment %s: %w", p.name, err)
	}
	defer func() {
		_ = k8s.Delete(context.WithoutCancel(ctx), deployment, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}()
	if arm == vpaArm {
		if err := k8s.Create(ctx, newVPA(namespace, p.name)); err != nil {
			return r, fmt.Errorf("creating VerticalPodAutoscaler %s: %w", p.name, err)
		}
	}
	pod, err := awaitRunning(ctx, k8s, namespace, p)
	if err != nil {
		return r, err
	}
	key := client.ObjectKeyFromObject(pod)
	since := pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time
	end := since.Add(before + p.lasts + 2*time.Second)
	f := follower{limit: int64(p.limit) << 20, result: &r, every: everyByAPI}
	f.read = func() (limit, used int64, err error) { return readFromAPI(ctx, k8s, key) }
	if o.node == "" {
		dir, err := cgroupOf(pod)
		if err != nil {
			return r, err
		}
		f.every, f.read = every, func() (limit, used int64, err error) { return readCgroup(dir) }
	}
	done := make(chan struct{})
	go f.follow(end, done)
	r.alarms = alarmsOf(ctx, k8s, key, end, done)
	<-done
	if o.node != "" {
		r.peak = max(r.peak, peakOn(ctx, o.exec, pod))
	}
	if err := k8s.Get(ctx, key, pod); err != nil {
		return r, err
	}
	for i := 0; i < 20 && f.gone && termination(pod) == nil; i++ {
		time.Sleep(500 * time.Millisecond)
		if err := k8s.Get(ctx, key, pod); err != nil {
			return r, err
		}
	}
	if t := termination(pod); t != nil {
		r.killed = true
		r.reason = fmt.Sprintf("%s %d", t.Reason, t.ExitCode)
	}
	return r, nil
}

// alarmsOf collects the times of a pod's alarms, by sequence.
func alarmsOf(
	ctx context.Context, k8s client.Client, key client.ObjectKey, end time.Time, done <-chan struct{},
) map[int64]time.Time {
	all := map[int64]time.Time{}
	for time.Now().Before(end) && ctx.Err() == nil {
		var s v1alpha1.MemorySnapshot
		if err := k8s.Get(ctx, key, &s); err == nil && s.Status.Alarm != nil {
			all[s.Status.Alarm.Sequence] = s.Status.Alarm.Time.Time
		}
		select {
		case <-done:
			return all
		case <-time.After(250 * time.Millisecond):
		}
	}
	return all
}

// cgroupOf finds the memory cgroup of a pod's only container on this machine (cgroup v1 of the lab, or v2).
func cgroupOf(pod *corev1.Pod) (string, error) {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	for _, pattern := range []string{
		"/sys/fs/cgroup/memory/*/kubepods/*/pod" + string(pod.UID) + "/" + id,
		"/sys/fs/cgroup/*/kubepods/*/pod" + string(pod.UID) + "/" + id,
	} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("no memory cgroup of pod %s on this machine: the bench runs on the node", pod.Name)
}

// follower reads the limit and the use of one container repeatedly.
type follower struct {
	read   func() (limit, used int64, err error)
	every  time.Duration
	limit  int64
	result *result
	gone   bool
}

func (f *follower) follow(end time.Time, done chan<- struct{}) {
	defer close(done)
	for ; time.Now().Before(end); time.Sleep(f.every) {
		limit, used, err := f.read()
		if err != nil {
			f.gone = true
			break
		}
		if limit > f.limit {
			f.result.raises = append(f.result.raises, raise{time.Now(), f.limit, limit})
			f.limit = limit
		}
		f.result.peak = max(f.result.peak, used)
	}
	f.result.ended = time.Now()
}

// peakOn returns the kernel's peak use of a pod's container on the second node, or 0 if its cgroup is gone.
func peakOn(ctx context.Context, exec string, pod *corev1.Pod) int64 {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	find := fmt.Sprintf("cat $(find /sys/fs/cgroup/kubepods -path '*/pod%s/%s/memory.peak')", pod.UID, id)
	data, _ := osexec.CommandContext(ctx, exec, "node-exec", "--", find).Output()
	peak, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return peak
}

// readCgroup reads a cgroup of this machine. An error means that it is gone.
func readCgroup(dir string) (limit, used int64, err error) {
	if limit, err = number(dir, "memory.limit_in_bytes", "memory.max"); err != nil {
		return 0, 0, err
	}
	used, _ = number(dir, "memory.usage_in_bytes", "memory.current") // 0 while it is removed
	return limit, used, nil
}

func number(dir string, files ...string) (n int64, err error) {
	for _, file := range files {
		var data []byte
		if data, err = os.ReadFile(filepath.Join(dir, file)); err == nil {
			return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		}
	}
	return 0, err
}

// readFromAPI reads the limit from the pod's status and the use from the agent's snapshot, up to a second late. An
// error means that the container has ended.
func readFromAPI(ctx context.Context, k8s client.Client, key client.ObjectKey) (limit, used int64, err error) {
	pod := &corev1.Pod{}
	if err := k8s.Get(ctx, key, pod); err != nil {
		return 0, 0, err
	}
	if t := termination(pod); t != nil {
		return 0, 0, fmt.Errorf("the container has ended: %s", t.Reason)
	}
	if r := pod.Status.ContainerStatuses[0].Resources; r != nil {
		limit = r.Limits.Memory().Value()
	}
	s := &v1alpha1.MemorySnapshot{}
	if err := k8s.Get(ctx, key, s); err == nil && len(s.Status.Containers) == 1 && s.Status.Containers[0].Usage != nil {
		used = s.Status.Containers[0].Usage.Value()
	}
	return limit, used, nil
}
