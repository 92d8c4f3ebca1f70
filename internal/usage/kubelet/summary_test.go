// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

var measured = time.Date(2026, 11, 20, 14, 0, 7, 0, time.UTC)

// typicalSummary is what a kubelet reports about a node with so many pods of two containers: testdata/summary.json,
// only more of it. With everything, it is the answer to a request that is not for CPU and memory only: networks,
// volumes and file systems too.
func typicalSummary(node, pods int, everything bool) []byte {
	s := stats.Summary{Node: stats.NodeStats{
		NodeName: fmt.Sprintf("node-%d", node), StartTime: metav1.NewTime(measured.Add(-240 * time.Hour)),
		SystemContainers: []stats.ContainerStats{container("kubelet", 0), container("runtime", 1), container("pods", 2)},
		CPU:              cpu(9), Memory: mem(9), Swap: swap(),
	}}
	for p := range pods {
		pod := stats.PodStats{
			PodRef: stats.PodReference{
				Namespace: fmt.Sprintf("team-%d", p%7), Name: fmt.Sprintf("web-6d4cf56db6-x%04d", p),
				UID: fmt.Sprintf("01234567-89ab-cdef-%04d-%012d", node, p),
			},
			StartTime:  metav1.NewTime(measured.Add(-24 * time.Hour)),
			Containers: []stats.ContainerStats{container("app", node+p), container("proxy", node+p+1)},
			CPU:        cpu(p), Memory: mem(p), Swap: swap(),
		}
		if everything {
			addEverything(&pod)
		}
		s.Pods = append(s.Pods, pod)
	}
	out, err := json.MarshalIndent(s, "", " ") // as kubelets do
	if err != nil {
		panic(err)
	}
	return out
}

func addEverything(pod *stats.PodStats) {
	pod.EphemeralStorage, pod.ProcessStats = fs(), &stats.ProcessStats{ProcessCount: new(uint64(17))}
	pod.Network = &stats.NetworkStats{
		Time: metav1.NewTime(measured), InterfaceStats: network("eth0"),
		Interfaces: []stats.InterfaceStats{network("eth0"), network("lo")},
	}
	pod.VolumeStats = []stats.VolumeStats{
		{FsStats: *fs(), Name: "kube-api-access-x7k2p"}, {FsStats: *fs(), Name: "config"},
	}
	for i := range pod.Containers {
		pod.Containers[i].Rootfs, pod.Containers[i].Logs = fs(), fs()
	}
}

func container(name string, i int) stats.ContainerStats {
	return stats.ContainerStats{
		Name: name, StartTime: metav1.NewTime(measured.Add(-time.Duration(i%1000) * time.Minute)),
		CPU: cpu(i), Memory: mem(i), Swap: swap(),
	}
}

func mem(i int) *stats.MemoryStats {
	rss := uint64(100+i%400) << 20
	return &stats.MemoryStats{
		Time: metav1.NewTime(measured), AvailableBytes: new(uint64(1 << 30)), UsageBytes: new(rss + 90<<20),
		WorkingSetBytes: new(rss + 20<<20),
		RSSBytes:        new(rss), PageFaults: new(uint64(123456)), MajorPageFaults: new(uint64(12)), PSI: psi(),
	}
}

func cpu(i int) *stats.CPUStats {
	return &stats.CPUStats{
		Time: metav1.NewTime(measured), UsageNanoCores: new(uint64(1000 * i)),
		UsageCoreNanoSeconds: new(uint64(123456789012)), PSI: psi(),
	}
}

func psi() *stats.PSIStats {
	return &stats.PSIStats{Full: stats.PSIData{Avg10: 0.01}, Some: stats.PSIData{Total: 77}}
}

func fs() *stats.FsStats {
	return &stats.FsStats{
		Time: metav1.NewTime(measured), AvailableBytes: new(uint64(84719616)), CapacityBytes: new(uint64(1 << 40)),
		UsedBytes:  new(uint64(12288)),
		InodesFree: new(uint64(6000000)), Inodes: new(uint64(6500000)), InodesUsed: new(uint64(9)),
	}
}

func swap() *stats.SwapStats {
	return &stats.SwapStats{
		Time: metav1.NewTime(measured), SwapAvailableBytes: new(uint64(0)), SwapUsageBytes: new(uint64(0)),
	}
}

func network(name string) stats.InterfaceStats {
	return stats.InterfaceStats{
		Name: name, RxBytes: new(uint64(112233)), RxErrors: new(uint64(0)), TxBytes: new(uint64(445566)),
		TxErrors: new(uint64(0)),
	}
}
