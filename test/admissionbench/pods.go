// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// benchCase are the new pods of one kind of workload, in the order in which a cluster makes them.
type benchCase struct {
	name      string
	workloads []newPod
	// replicas is how many pods of a workload come one after the other, as when it is rolled out or scaled up.
	replicas int
	// made counts the pods of the whole run, over all servers and rounds: none has the same bytes as another.
	made atomic.Int64
}

// The cases.
const (
	governed   = "governed"
	ungoverned = "ungoverned"
)

// together is how many workloads are rolled out at the same time: their pods take turns.
const together = 8

// newPod is a review with holes for what no two pods of a workload share.
type newPod struct {
	text  []byte
	holes []int
}

// hole stands in a newPod where a pod has five characters of its own.
const hole = "@@@@@"

// fill appends the review of pod number n.
func (p *newPod) fill(out []byte, n int64) []byte {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // those the API server makes names of
	var own [len(hole)]byte
	for i := range own {
		own[i] = letters[n%int64(len(letters))]
		n /= int64(len(letters))
	}
	start := len(out)
	out = append(out, p.text...)
	for _, at := range p.holes {
		copy(out[start+at:], own[:])
	}
	return out
}

// order is the workload of pod i of a sequence: in groups of workloads that are rolled out together, pod by pod.
func (c *benchCase) order(i int) *newPod {
	group, within := i/(together*c.replicas), i%(together*c.replicas)
	return &c.workloads[(group*together+within%together)%len(c.workloads)]
}

// cases are pods of governed and of ungoverned workloads.
func (w *world) cases() ([]*benchCase, error) {
	var theirs, nobodys []newPod
	for n := range w.workloads {
		// A step that shares no factor with the number of workloads visits them all, in no order a processor's cache would
		// like.
		i := n * 7919 % w.workloads
		pod, err := review(i)
		if err != nil {
			return nil, err
		}
		if _, ok := w.profileOf(i); ok {
			theirs = append(theirs, pod)
		} else {
			nobodys = append(nobodys, pod)
		}
	}
	if len(theirs) == 0 || len(nobodys) == 0 {
		return nil, fmt.Errorf("%d governed and %d ungoverned workloads: both are needed", len(theirs), len(nobodys))
	}
	return []*benchCase{
		{name: governed, workloads: theirs, replicas: replicas},
		{name: ungoverned, workloads: nobodys, replicas: replicas},
	}, nil
}

// review is the AdmissionReview for a new pod of workload i.
func review(i int) (newPod, error) {
	t := template(i)
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.GenerateName = replicaSet(i) + "-"
	pod.Name = pod.GenerateName + hole
	pod.Namespace = namespace(i)
	pod.Labels["pod-template-hash"] = hash(i)
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet(i), UID: uid("r", i), Controller: new(true),
			BlockOwnerDeletion: new(true)},
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created,
		FieldsType: "FieldsV1",
		FieldsV1:   metav1.NewFieldsV1(managedFields),
	}}
	raw, err := json.Marshal(pod)
	if err != nil {
		return newPod{}, err
	}
	gvk, gvr := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, metav1.GroupVersionResource{
		Version: "v1", Resource: "pods",
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(hole + "000-1111-4000-8000-000000000000"), Kind: gvk, Resource: gvr, RequestKind: &gvk,
			RequestResource: &gvr,
			Name:            pod.Name, Namespace: pod.Namespace, Operation: admissionv1.Create, DryRun: new(false),
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:replicaset-controller", UID: "6f2b0a0e-1111-4000-8000-000000000000",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
			},
			Object:  runtime.RawExtension{Raw: raw},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	p := newPod{text: text}
	for at := 0; ; at += len(hole) {
		next := bytes.Index(text[at:], []byte(hole))
		if next < 0 {
			return p, err
		}
		at += next
		p.holes = append(p.holes, at)
	}
}

// template is a usual pod: an application and a proxy with probes, some variables, mounts, and what the API server's
// own plugins add.
func template(i int) corev1.PodTemplateSpec {
	variables := []corev1.EnvVar{
		{Name: "NODE_OPTIONS", Value: "--require ./tracing.js"}, {Name: "PORT", Value: "8080"},
		{Name: "LOG_LEVEL", Value: "info"},
	}
	for _, name := range []string{"DATABASE", "CACHE", "QUEUE", "SEARCH"} {
		variables = append(
			variables, corev1.EnvVar{Name: name + "_URL", Value: "tcp://" + name + ".shop.svc.cluster.local:5432"},
		)
	}
	variables = append(
		variables,
		corev1.EnvVar{
			Name:      "POD_NAME",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}},
		},
	)
	probe := func(path string) *corev1.Probe {
		p := &corev1.Probe{PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
		p.HTTPGet = &corev1.HTTPGetAction{Path: path, Scheme: corev1.URISchemeHTTP}
		p.HTTPGet.Port.IntVal = 8080
		return p
	}
	mounts := []corev1.VolumeMount{
		{Name: "config", MountPath: "/etc/app"},
		{Name: serviceAccount, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
	}
	container := func(name, cpu, request, limit string, env []corev1.EnvVar) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.test/shop/" + name + ":1.42.0", ImagePullPolicy: corev1.PullIfNotPresent,
			Env: env, VolumeMounts: mounts,
			Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(request),
				},
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}
	}
	labels := map[string]string{"app": workload(i), "app.kubernetes.io/part-of": "shop"}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: labels, Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				container("app", "100m", "512Mi", "576Mi", variables), container("proxy", "20m", "96Mi", "128Mi", nil),
			},
			Volumes:       volumes(),
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler",
			ServiceAccountName:            "web",
			TerminationGracePeriodSeconds: new(int64(30)), EnableServiceLinks: new(true),
			PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority), Priority: new(int32(0)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300))},
			},
		},
	}
}

// serviceAccount is the volume that the API server adds, under a name that is different for each pod.
const serviceAccount = "kube-api-access-" + hole

func volumes() []corev1.Volume {
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("web"), DefaultMode: new(int32(420))},
		}},
		{Name: serviceAccount,
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)),
				Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: named("kube-root-ca.crt"), Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
					}},
				}}}},
	}
}

// managedFields is what the API server has noted about a pod's owner by the time it asks webhooks.
const managedFields = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"NODE_OPTIONS\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"PORT\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}`
