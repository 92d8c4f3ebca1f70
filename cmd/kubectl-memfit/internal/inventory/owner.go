// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Owner returns the workload that owns a pod as far as the pod itself shows it: a Deployment by the pod-template-hash
// label, a CronJob by the minute in its Job's name. For other owners of ReplicaSets and Jobs, which would need a read
// each, it returns the ReplicaSet or Job.
func Owner(pod metav1.Object) v1alpha1.WorkloadReference {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return v1alpha1.WorkloadReference{APIVersion: "v1", Kind: barePod, Name: pod.GetName()}
	}
	labels := pod.GetLabels()
	direct := workloadkind.Like(ref.APIVersion, ref.Kind)
	for _, k := range workloadkind.All() {
		base, ok := "", false
		switch {
		case k.HashLabel != "" && labels[k.HashLabel] != "" && direct.HasHash:
			base, ok = strings.CutSuffix(ref.Name, "-"+labels[k.HashLabel])
		case k.PodNames == workloadkind.GeneratedWithTime && direct.PodNames == workloadkind.GeneratedWithIndex:
			base, ok = cronJob(ref.Name, pod.GetCreationTimestamp().Time)
		}
		if ok {
			return v1alpha1.WorkloadReference{APIVersion: k.APIVersion(), Kind: k.Name, Name: base}
		}
	}
	return v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
}

// barePod is the kind of a pod that is its own workload.
var barePod = func() string {
	all := workloadkind.All()
	return all[slices.IndexFunc(all, func(k workloadkind.Kind) bool { return k.PodNames == workloadkind.SameName })].Name
}()

// cronJob returns the CronJob's name in a Job's name "<name>-<minutes since 1970>", if these minutes are shortly before
// the pod's creation.
func cronJob(job string, born time.Time) (name string, ok bool) {
	i := strings.LastIndexByte(job, '-')
	if i < 1 {
		return "", false
	}
	minutes, err := strconv.ParseInt(job[i+1:], 10, 64)
	age := born.Unix()/60 - minutes
	return job[:i], err == nil && age >= -1 && age < 7*24*60
}
