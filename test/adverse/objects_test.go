// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/labnode"
)

// Images of the lab's workloads.
const (
	goImage     = "memfit.test/goprobe:dev"
	jdkImage    = "memfit.test/jdk:17"
	pythonImage = "memfit.test/python:3.11"
	pauseImage  = "memfit.test/pause:lab"
)

const (
	profileName = "adverse"
	appName     = "web"
)

// Programs of the workloads.
const (
	// grow allocates 220 MiB, keeps them for two seconds and exits.
	grow = `import time; x = bytearray(220<<20); time.sleep(2)`
	// spike allocates 220 MiB for three seconds and then keeps 30 MiB.
	spike = `import time
x = bytearray(220<<20); time.sleep(3); del x
y = bytearray(30<<20)
while True: time.sleep(1)`
	// stall fills 84 % of 128Mi and repeatedly reads a mapped file of 20 % in random order, so that readahead does not
	// help. It is ready while a round takes less than 0.2 s; from memory a round takes some milliseconds.
	stall = `import mmap, os, random, time
size = 26 << 20
with open('/scratch/f', 'wb') as f: f.write(os.urandom(size))
x = bytearray(108<<20)
f = open('/scratch/f', 'rb'); m = mmap.mmap(f.fileno(), size, prot=mmap.PROT_READ); m.madvise(mmap.MADV_RANDOM)
pages = list(range(0, size, 4096)); random.shuffle(pages)
while True:
    began = time.time()
    for i in pages: m[i]
    if time.time() - began < 0.2: open('/tmp/ready', 'w').close()
    elif os.path.exists('/tmp/ready'): os.remove('/tmp/ready')
    time.sleep(0.02)`
)

// podChange changes the template of a workload's pods, usually the first container.
type podChange func(*corev1.PodSpec)

func holds(size string) podChange { return probe("-hold", size) }
func leaks(size string) podChange { return probe("-leak", size) }

func probe(args ...string) podChange {
	return func(p *corev1.PodSpec) { p.Containers[0].Image, p.Containers[0].Args = goImage, args }
}

func python(program string) podChange {
	return func(p *corev1.PodSpec) {
		p.Containers[0].Image, p.Containers[0].Command = pythonImage, []string{"python3", "-c", program}
	}
}

func shell(script string) podChange {
	return func(p *corev1.PodSpec) {
		p.Containers[0].Image, p.Containers[0].Command = pythonImage, []string{"sh", "-c", script}
	}
}

// registry runs an almost idle JVM.
func registry(p *corev1.PodSpec) {
	p.Containers[0].Image = jdkImage
	p.Containers[0].Command = []string{"sh", "-c", "exec $JAVA_HOME/bin/rmiregistry -J-XX:+UseSerialGC"}
	p.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1099)}}, PeriodSeconds: 2,
	}
}

// java runs a single-file program that keeps the heap alive, in MiB; the file is written at the start.
func java(heapMiB int, flags ...string) podChange {
	source := fmt.Sprintf(`public class Keep { public static void main(String[] a) throws Exception {
	var kept = new java.util.ArrayList<byte[]>(); for (int i = 0; i < %d; i++) kept.add(new byte[1 << 20]);
	System.out.println("kept " + kept.size()); Thread.sleep(Long.MAX_VALUE); } }`, heapMiB)
	run := "java -Xint -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
	for _, f := range flags {
		run += " " + f
	}
	return func(p *corev1.PodSpec) {
		p.Containers[0].Image = jdkImage
		p.Containers[0].Command = []string{
			"sh", "-c", "cat > /tmp/Keep.java <<'EOT'\n" + source + "\nEOT\nexec " + run + " /tmp/Keep.java",
		}
	}
}

// maxHeapSize sets the variable with which Cassandra's start script sets the heap size.
func maxHeapSize(size string) podChange {
	return func(p *corev1.PodSpec) {
		p.Containers[0].Env = append(p.Containers[0].Env, corev1.EnvVar{Name: "MAX_HEAP_SIZE", Value: size})
	}
}

// jdk adds a writable /tmp for the compiler of a single-file program.
func jdk(p *corev1.PodSpec) { emptyDir(p, "tmp", "/tmp") }

// scratch adds a directory on the node's disk, so that reading its files fills page cache.
func scratch(p *corev1.PodSpec) { emptyDir(p, "scratch", "/scratch") }

func emptyDir(p *corev1.PodSpec, name, path string) {
	p.Volumes = append(
		p.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	)
	p.Containers[0].VolumeMounts = append(p.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
}

// readyFile makes the pod ready while /tmp/ready exists, for workloads that fail without a kill of the container.
func readyFile(p *corev1.PodSpec) {
	emptyDir(p, "ready", "/tmp")
	p.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/tmp/ready"}}},
		PeriodSeconds: 2, FailureThreshold: 2, TimeoutSeconds: 5,
	}
}

func guaranteed(p *corev1.PodSpec) {
	c := &p.Containers[0]
	c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("100m")
	c.Resources.Requests = c.Resources.Limits.DeepCopy()
}

// sidecar adds a container with its own program and limit.
func sidecar(name, limit string, program podChange) podChange {
	return func(p *corev1.PodSpec) {
		own := podSpec(limit, program)
		own.Containers[0].Name = name
		if own.Containers[0].Image == goImage {
			own.Containers[0].Args = append(own.Containers[0].Args, "-listen", ":8081")
		}
		p.Containers = append(p.Containers, own.Containers[0])
	}
}

func podSpec(limit string, changes ...podChange) corev1.PodSpec {
	grace, yes := int64(1), false
	p := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &yes,
		Containers: []corev1.Container{{
			Name: "app", ImagePullPolicy: corev1.PullIfNotPresent,
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")},
			},
		}},
	}
	if node := os.Getenv("ADVERSE_NODE"); node != "" { // the lab's second node, which has a taint
		labnode.Place(&p, node)
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func template(limit string, changes []podChange) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": appName}}, Spec: podSpec(limit, changes...),
	}
}

func named(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: appName, Labels: map[string]string{"app": appName}}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": appName}}

// objectsOf returns the objects of a workload in a namespace, in the order of their creation.
type objectsOf = func(namespace string) []client.Object

// deployment returns a Deployment after the changes, each a change of the pods or a func(*appsv1.Deployment).
func deployment(limit string, changes ...any) objectsOf {
	return func(namespace string) []client.Object {
		var pods []podChange
		d := &appsv1.Deployment{ObjectMeta: named(namespace), Spec: appsv1.DeploymentSpec{Selector: selector}}
		for _, c := range changes {
			switch change := c.(type) {
			case podChange:
				pods = append(pods, change)
			case func(*corev1.PodSpec):
				pods = append(pods, change)
			case func(*appsv1.Deployment):
				change(d)
			default:
				panic(fmt.Sprintf("deployment accepts changes of pods and of Deployments, not %T", c))
			}
		}
		d.Spec.Template = template(limit, pods)
		return []client.Object{d}
	}
}

func replicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func statefulSet(limit string, changes ...podChange) objectsOf {
	return func(namespace string) []client.Object {
		return []client.Object{&appsv1.StatefulSet{
			ObjectMeta: named(namespace), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template(limit, changes)},
		}}
	}
}

// pair sets two replicas for a StatefulSet.
func pair(objects objectsOf) objectsOf {
	return func(namespace string) []client.Object {
		all, two := objects(namespace), int32(2)
		all[0].(*appsv1.StatefulSet).Spec.Replicas = &two
		return all
	}
}

// cronJob returns a CronJob that runs every minute, allocates memory for 20 s and exits.
func cronJob(limit, takes string) objectsOf {
	return func(namespace string) []client.Object {
		t := template(
			limit,
			[]podChange{shell(`python3 -c "import time; x = bytearray(` + takes[:len(takes)-2] + `<<20); time.sleep(20)"`)},
		)
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
		never := int32(0)
		return []client.Object{&batchv1.CronJob{ObjectMeta: named(namespace), Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{BackoffLimit: &never, Template: t}},
		}}}
	}
}

// with adds an object that is created before the workload.
func with(objects objectsOf, beside func(namespace string) client.Object) objectsOf {
	return func(namespace string) []client.Object {
		return append([]client.Object{beside(namespace)}, objects(namespace)...)
	}
}

func quota(limit string) func(string) client.Object {
	return func(namespace string) client.Object {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tight"},
			Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse(limit)},
			},
		}
	}
}

func limitRange(most string) func(string) client.Object {
	return func(namespace string) client.Object {
		return &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(most)},
			}}},
		}
	}
}

func memoryHPA() func(string) client.Object {
	return func(namespace string) client.Object {
		use := int32(80)
		return &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "by-memory"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: appName},
				MaxReplicas:    1,
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
					Resource: &autoscalingv2.ResourceMetricSource{
						Name:   corev1.ResourceMemory,
						Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &use},
					}}},
			},
		}
	}
}

// filler returns a pod whose request leaves only part of the node's memory free.
func filler(left memory.Bytes) func(string) client.Object {
	return func(namespace string) client.Object {
		p := podSpec("64Mi")
		p.Containers[0].Image, p.Containers[0].Resources = pauseImage, corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: (freeForRequests() - left).Quantity()},
		}
		meta := metav1.ObjectMeta{
			Namespace: namespace, Name: "filler", Annotations: map[string]string{v1alpha1.InjectAnnotation: "false"},
		}
		return &corev1.Pod{ObjectMeta: meta, Spec: p}
	}
}
