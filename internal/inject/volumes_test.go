// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
)

func TestVolumesHold(t *testing.T) {
	volume := func(name string, medium corev1.StorageMedium, limit *resource.Quantity) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: limit},
		}}
	}
	mounts := func(names ...string) (all []corev1.VolumeMount) {
		for _, name := range names {
			all = append(all, corev1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		return all
	}
	reads := func(names ...string) []corev1.VolumeMount {
		all := mounts(names...)
		for i := range all {
			all[i].ReadOnly = true
		}
		return all
	}
	size := resource.MustParse("64Mi")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			volume("shm", corev1.StorageMediumMemory, &size), volume("disk", "", &size),
			volume("open", corev1.StorageMediumMemory, nil),
		},
		Containers: []corev1.Container{
			{Name: "db", VolumeMounts: append(mounts("shm", "disk", "open"), mounts("shm")...)}, {Name: "side"},
			{Name: "reader", VolumeMounts: reads("shm", "open")},
			{Name: "both", VolumeMounts: append(reads("shm"), mounts("shm")...)},
		},
		InitContainers: []corev1.Container{{Name: "init", VolumeMounts: mounts("shm")}},
	}}
	for name, want := range map[string]memory.Bytes{
		"db": 64 * memory.MiB, "side": 0, "init": 64 * memory.MiB, "reader": 0, "both": 64 * memory.MiB,
	} {
		if got := VolumesCapacity(pod, container(pod, name)); got != want {
			t.Errorf("volumes of %s hold %s, want %s", name, got, want)
		}
	}
}
