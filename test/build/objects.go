// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Namespace returns a namespace with annotations, given as key, value, key, value.
func Namespace(name string, annotations ...string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: with(nil, annotations)}}
}

// ControllerRef returns a controller reference to owner.
func ControllerRef(owner metav1.Object, apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}
}

// Deployment returns a Deployment with annotations, given as key, value, key, value; its pod template has none.
func Deployment(namespace, name string, annotations ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: with(nil, annotations)},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
	}
}

// DaemonSet returns a DaemonSet with annotations, given as key, value, key, value; its pod template has none.
func DaemonSet(namespace, name string, annotations ...string) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: with(nil, annotations)},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
	}
}

// ReplicaSet returns a ReplicaSet of a Deployment that is already created.
func ReplicaSet(d *appsv1.Deployment, hash string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": d.Name, "pod-template-hash": hash}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{ControllerRef(d, "apps/v1", "Deployment")},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
	}
}

// CronJob returns a suspended CronJob with annotations, given as key, value, key, value.
func CronJob(namespace, name string, annotations ...string) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: with(nil, annotations)},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 0 31 2 *", Suspend: new(true), JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec(name)},
		},
	}
}

// Job returns a Job of a CronJob that is already created, or a Job without an owner if owner is nil.
func Job(namespace, name string, owner *batchv1.CronJob) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: jobSpec(name)}
	if owner != nil {
		job.OwnerReferences = []metav1.OwnerReference{ControllerRef(owner, "batch/v1", "CronJob")}
	}
	return job
}

func jobSpec(name string) batchv1.JobSpec {
	t := template(map[string]string{"job": name})
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{Template: t}
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1"}}},
	}
}

// Profile returns a MemoryProfile for a runtime.
func Profile(
	namespace, name string, runtime v1alpha1.RuntimeType, edits ...func(*v1alpha1.MemoryProfileSpec),
) *v1alpha1.MemoryProfile {
	p := &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Runtime.Type = runtime
	for _, edit := range edits {
		edit(&p.Spec)
	}
	return p
}

// ClusterProfile returns a ClusterMemoryProfile for a runtime.
func ClusterProfile(
	name string, runtime v1alpha1.RuntimeType, edits ...func(*v1alpha1.MemoryProfileSpec),
) *v1alpha1.ClusterMemoryProfile {
	p := &v1alpha1.ClusterMemoryProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Runtime.Type = runtime
	for _, edit := range edits {
		edit(&p.Spec.MemoryProfileSpec)
	}
	return p
}

// Selecting makes a profile select pods by labels, given as key, value, key, value.
func Selecting(pairs ...string) func(*v1alpha1.MemoryProfileSpec) {
	return func(s *v1alpha1.MemoryProfileSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: with(nil, pairs)} }
}

// Sizing sets the sizing mode.
func Sizing(mode v1alpha1.SizingMode) func(*v1alpha1.MemoryProfileSpec) {
	return func(s *v1alpha1.MemoryProfileSpec) { s.Sizing.Mode = mode }
}
