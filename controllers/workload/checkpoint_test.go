// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/workload"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("The largest checkpoint", func() {
	It("is taken by the API server, whole", func() {
		w := newWorld()
		c := &v1alpha1.MemoryCheckpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "full"}}
		expect.Applied(w.ctx, w.client, c.DeepCopy())
		c = expect.Exists(w.ctx, w.client, w.namespace, "full", c)
		c.Status = v1alpha1.MemoryCheckpointStatus{Version: v1alpha1.CheckpointVersion}
		for i := range workload.MaxContainers {
			c.Status.Containers = append(
				c.Status.Containers, v1alpha1.CheckpointContainer{Name: fmt.Sprintf("app-%02d", i), History: make([]byte, 1536)},
			)
		}
		data, err := json.Marshal(c)
		Expect(err).NotTo(HaveOccurred())
		c.Status.Ledger = make([]byte, (workload.MaxCheckpoint-len(data))*3/4)
		Expect(w.client.Status().Update(w.ctx, c)).To(Succeed())
		stored := expect.Exists(w.ctx, w.client, w.namespace, "full", &v1alpha1.MemoryCheckpoint{})
		Expect(stored.Status.Ledger).To(HaveLen(len(c.Status.Ledger)))
		Expect(stored.Status.Containers).To(HaveLen(workload.MaxContainers))
	})
})
