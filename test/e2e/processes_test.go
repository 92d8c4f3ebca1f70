// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// fillsTwoHeaps is a server with two workers of node:cluster, each of which fills 70 % of its heap, like a cache that
// is sized by the heap. It exits when a worker exits.
const fillsTwoHeaps = `const cluster = require("cluster"), v8 = require("v8");
if (cluster.isPrimary) {
  const workers = {};
  for (let i = 0; i < 2; i++) cluster.fork().on("message", (m) => { workers[m.id] = m; });
  cluster.on("exit", (w, code, signal) => { console.log("a worker ended: " + (signal || code)); process.exit(1); });
  require("http").createServer((q, r) => r.end(JSON.stringify(Object.values(workers)))).listen(8080);
} else {
  const cache = [], heap = () => v8.getHeapStatistics();
  let full = false;
  setInterval(() => {
    for (let i = 0; i < 20 && !full; i++) {
      full = heap().used_heap_size > 0.7 * heap().heap_size_limit;
      cache.push(new Array(1 << 15).fill(0.5));
    }
    const cap = heap().heap_size_limit >> 20, used = heap().used_heap_size >> 20;
    process.send({ id: cluster.worker.id, full, cap, heap: used, rss: process.memoryUsage().rss >> 20 });
  }, 100);
}`

// worker is what a worker of fillsTwoHeaps reports about itself, in MiB.
type worker struct {
	Full           bool
	Cap, Heap, RSS int64
}

var _ = Describe("several processes in one container", func() {
	namespace := inNamespace()

	It("have heaps that fit together only where the profile has their number", func(ctx SpecContext) {
		const limit = 512
		p := profile(*namespace, v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"},
		})
		Expect(k8s.Create(ctx, p)).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(
			k8s.Create(ctx, workload(*namespace, nodeImage, "512Mi", []string{
				"sh", "-c", `printf %s "$0" > /tmp/server.js; exec node /tmp/server.js`, fillsTwoHeaps, // workers need a file
			}, annotated)),
		).To(Succeed())

		By("starting two workers, each with the heap size of the whole container")
		whole := runningPod(ctx, *namespace)
		Expect(env(whole)["NODE_OPTIONS"]).To(Equal("--max-old-space-size=381"), "75 %% of 512Mi, less 3Mi")
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeNumerically(">=", 1))
			g.Expect(rec.Status.RecentOOMKills[0].Pod).To(Equal(whole.Name))
			GinkgoWriter.Println(rec.Status.RecentOOMKills[0].Summary)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())

		By("setting tuning.processes to 2")
		edit(ctx, p, func() { p.Spec.Tuning.Processes = new(int32(2)) })
		waitUntilKnown(ctx, *namespace)
		divided := replacePod(ctx, &pods(ctx, *namespace)[0])
		Expect(env(divided)["NODE_OPTIONS"]).To(Equal("--max-old-space-size=189"), "75 %% of 256Mi, less 3Mi")
		var workers []worker
		filled := func(g Gomega) {
			g.Expect(workersOf(ctx, divided, &workers)).To(Succeed())
			g.Expect(workers).To(HaveLen(2))
			for _, w := range workers {
				g.Expect(w.Full).To(BeTrue(), "%+v", w)
			}
			g.Expect(workers[0].Cap + workers[1].Cap).To(BeNumerically("<", limit))
		}
		Eventually(filled).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Consistently(func(g Gomega) {
			filled(g)
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(divided.UID))
			g.Expect(restarts(&live[0])).To(BeZero())
		}).WithContext(ctx).WithTimeout(soon / 9).Should(Succeed())
		GinkgoWriter.Printf("two workers under %dMi: %+v\n", limit, workers)
		rec, err := recommendation(ctx, *namespace)
		Expect(err).NotTo(HaveOccurred())
		for _, kill := range rec.Status.RecentOOMKills {
			Expect(kill.Pod).NotTo(Equal(divided.Name))
		}
	}, SpecTimeout(later*3))
})

// workersOf reads the reports of a pod's workers.
func workersOf(ctx context.Context, pod *corev1.Pod, workers *[]worker) error {
	text, err := getFrom(ctx, pod, "/")
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), workers)
}
