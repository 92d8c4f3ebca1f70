// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/labnode"
)

// steady is how long all replicas must be ready without a restart to count as healthy.
const steady = 20 * time.Second

// record holds the observations of one workload.
type record struct {
	// requested is the highest limit of container app, in a pod's spec or recommended.
	requested memory.Bytes
	// inSpec is the highest limit of container app in a pod's spec.
	inSpec memory.Bytes
	// other is the highest limit of another container.
	other memory.Bytes
	// disrupted are pods that ended without the test having deleted them; deleted are those that the test deleted.
	disrupted, deleted map[types.UID]bool
	// request and use are those of the pod with the highest ratio of use to request, at the last reading.
	request, use memory.Bytes
	// recommended is the recommended request.
	recommended memory.Bytes
	// healthyAfter is the time until all replicas were ready for steady, without a restart since then; 0: never.
	healthyAfter time.Duration
	// deletedAsAdvised counts pods that the test deleted because memfit advised it. memfit has advised to delete
	// advisedPod since advisedSince.
	deletedAsAdvised int
	advisedPod       string
	advisedSince     time.Time
	// ended: a run has succeeded, and is no longer measured.
	ended bool
	// texts are the recommendation's texts at the last reading.
	texts string
	// refused is the API server's message about a pod that could not be created.
	refused string
	// lastPods are the pods of the last reading, notes are additions to the result in the table.
	lastPods []corev1.Pod
	notes    []string

	// measured are the times at which the kubelet measured each pod since the workload was healthy, worst is the pod of
	// request and use. settling: a resize is not effective yet.
	measured map[types.UID]map[time.Time]bool
	worst    types.UID
	settling bool

	pods     map[types.UID]bool
	restarts map[types.UID]int32
	since    time.Time // the last restart, or the last time at which a replica was not ready
}

func newRecord(now time.Time) *record {
	return &record{
		disrupted: map[types.UID]bool{}, deleted: map[types.UID]bool{}, pods: map[types.UID]bool{},
		restarts: map[types.UID]int32{}, since: now, measured: map[types.UID]map[time.Time]bool{},
	}
}

// done reports whether the workload can be judged. This depends on the kubelet's measurements and resizes rather than
// on time alone, because they come late on a slow node. A workload that becomes healthy late is watched for as long as
// others, because memfit needs four readings to raise a request.
func (r *record) done(w *workload, since time.Duration) bool {
	within := w.within + r.extraTime()
	if since > 2*within+after && (w.staysUnhealthy || r.healthyAfter == 0 || since > r.healthyAfter+2*after) {
		return true
	}
	if w.staysUnhealthy || r.healthyAfter == 0 {
		return since > within && (!w.staysUnhealthy || r.restartCount() >= w.deaths)
	}
	measured := r.ended || len(r.measured[r.worst]) >= measurements
	// memfit may not have read yet the use that the test has just read.
	covered := max(r.request, r.recommended) >= r.use || since > r.healthyAfter+3*after
	return since > r.healthyAfter+after && measured && covered && !r.settling
}

// extraTime returns additional time for kubelets that do not apply a resize if it arrives while the container is down
// (kubernetes/kubernetes#138760). memfit then advises to delete the pod, which the test does after a minute; the next
// pod may have the same problem.
func (r *record) extraTime() time.Duration {
	pods := r.deletedAsAdvised
	if strings.Contains(r.texts, "kubernetes/kubernetes#138760") {
		pods++
	}
	return min(time.Duration(pods)*3*time.Minute, 6*time.Minute)
}

// measurements is how many the kubelet makes in the time after.
const measurements = 5

// restartCount returns the number of container restarts.
func (r *record) restartCount() (n int32) {
	for _, restarts := range r.restarts {
		n += restarts
	}
	return n
}

// read reads the state of the namespace and updates the record.
func (r *record) read(ctx context.Context, w *workload, namespace string, began time.Time) error {
	var pods corev1.PodList
	var recs v1alpha1.MemoryRecommendationList
	inNamespace := client.InNamespace(namespace)
	if err := k8s.List(ctx, &pods, inNamespace, client.MatchingLabels{"app": appName}); err != nil {
		return err
	}
	if err := k8s.List(ctx, &recs, inNamespace); err != nil {
		return err
	}
	now := time.Now()
	r.lastPods = pods.Items
	r.follow(pods.Items)
	r.sizes(pods.Items, &recs)
	if r.healthy(w, pods.Items, now) && r.healthyAfter == 0 && now.Sub(r.since) >= steady {
		r.healthyAfter = now.Sub(began)
	}
	r.cover(pods.Items)
	return r.refusals(ctx, namespace)
}

// follow records restarts and ended pods.
func (r *record) follow(pods []corev1.Pod) {
	live := map[types.UID]bool{}
	for i := range pods {
		p := &pods[i]
		live[p.UID] = p.DeletionTimestamp == nil
		if p.DeletionTimestamp != nil || p.Status.Reason == "Evicted" {
			live[p.UID] = false
		}
		var restarts int32
		for _, s := range p.Status.ContainerStatuses {
			restarts += s.RestartCount
		}
		if restarts > r.restarts[p.UID] {
			r.restarts[p.UID], r.since = restarts, time.Now()
			r.healthyAfter, r.measured = 0, map[types.UID]map[time.Time]bool{} // it was not healthy after all
		}
	}
	for uid := range r.pods {
		if !live[uid] && !r.deleted[uid] {
			r.disrupted[uid] = true
		}
	}
	maps.Copy(r.pods, live)
}

func (r *record) sizes(pods []corev1.Pod, recs *v1alpha1.MemoryRecommendationList) {
	noteLimit := func(container string, limit memory.Bytes) {
		if container == "app" {
			r.requested = max(r.requested, limit)
		} else {
			r.other = max(r.other, limit)
		}
	}
	for i := range pods {
		for _, c := range pods[i].Spec.Containers {
			limit := memory.FromQuantity(*c.Resources.Limits.Memory())
			noteLimit(c.Name, limit)
			if c.Name == "app" {
				r.inSpec = max(r.inSpec, limit)
			}
		}
	}
	var texts []string
	for i := range recs.Items {
		s := &recs.Items[i].Status
		texts = append(texts, s.Summary)
		for j := range s.Containers {
			c := &s.Containers[j]
			texts = append(append(texts, c.Reasons...), c.Advice...)
			if c.Recommended != nil && c.Recommended.Limit != nil {
				noteLimit(c.Container, memory.FromQuantity(*c.Recommended.Limit))
			}
			if c.Container == "app" && c.Recommended != nil && c.Recommended.Request != nil {
				r.recommended = memory.FromQuantity(*c.Recommended.Request)
			}
		}
		for _, c := range s.Conditions {
			texts = append(texts, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
	}
	if len(texts) > 0 {
		r.texts = strings.Join(texts, "\n")
	}
}

// healthy reports whether all replicas are ready, or a run of a CronJob has succeeded.
func (r *record) healthy(w *workload, pods []corev1.Pod, now time.Time) bool {
	ready := 0
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodSucceeded {
			r.since, r.ended = now.Add(-steady), true // healthy immediately
			return true
		}
		if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
	}
	if ready < max(w.replicas, 1) {
		r.since = now
		return false
	}
	return true
}

// cover finds the pod with the highest ratio of measured use to request.
func (r *record) cover(pods []corev1.Pod) {
	r.request, r.use, r.settling = 0, 0, false
	var worst float64
	for i := range pods {
		p := &pods[i]
		r.settling = r.settling || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			underWay := c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
			return underWay && c.Status == corev1.ConditionTrue
		})
		use, at, known := usage.of(p.UID, "app")
		if !known || use == 0 || p.DeletionTimestamp != nil {
			continue
		}
		if r.healthyAfter > 0 {
			if r.measured[p.UID] == nil {
				r.measured[p.UID] = map[time.Time]bool{}
			}
			r.measured[p.UID][at] = true
		}
		request := memory.FromQuantity(*p.Spec.Containers[0].Resources.Requests.Memory())
		if share := float64(use) / float64(max(request, 1)); share > worst {
			worst, r.worst, r.request, r.use = share, p.UID, request, use
		}
	}
}

// refusals records Events about pods whose creation was forbidden, as by an admission webhook.
func (r *record) refusals(ctx context.Context, namespace string) error {
	var events corev1.EventList
	if err := k8s.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == "FailedCreate" && strings.Contains(e.Message, "forbidden") {
			r.refused = e.Message
		}
	}
	return nil
}

// measurement is the kubelet's measurement of a container.
type measurement struct {
	rss memory.Bytes
	at  time.Time
}

// measured holds the last measurements of all containers, by pod.
type measured map[types.UID]map[string]measurement

// nodeUsage holds the kubelet's measurements, which are read once for all workloads.
type nodeUsage struct{ last chan measured }

var usage = nodeUsage{last: make(chan measured, 1)}

func (u *nodeUsage) of(pod types.UID, container string) (rss memory.Bytes, at time.Time, known bool) {
	now := <-u.last
	u.last <- now
	m, found := now[pod][container]
	return m.rss, m.at, found
}

// poll reads all nodes every few seconds until ctx ends.
func (u *nodeUsage) poll(ctx context.Context) {
	u.last <- nil
	for ctx.Err() == nil {
		if read, err := readUsage(ctx); err == nil {
			<-u.last
			u.last <- read
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

func readUsage(ctx context.Context) (measured, error) {
	var nodes corev1.NodeList
	if err := k8s.List(ctx, &nodes); err != nil {
		return nil, err
	}
	all := measured{}
	for i := range nodes.Items {
		raw, err := clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[i].Name).
			SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
		var summary stats.Summary
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &summary); err != nil {
			return nil, err
		}
		for _, p := range summary.Pods {
			of := map[string]measurement{}
			for _, c := range p.Containers {
				if c.Memory != nil && c.Memory.RSSBytes != nil {
					of[c.Name] = measurement{memory.Bytes(*c.Memory.RSSBytes), c.Memory.Time.Time}
				}
			}
			all[types.UID(p.PodRef.UID)] = of
		}
	}
	return all, nil
}

// freeForRequests returns the node's allocatable memory minus its pods' requests.
func freeForRequests() memory.Bytes {
	ctx := context.Background()
	var nodes corev1.NodeList
	var pods corev1.PodList
	err := k8s.List(ctx, &nodes)
	// The workloads run on the node with that label value, or on the node without the label.
	nodes.Items = slices.DeleteFunc(
		nodes.Items, func(n corev1.Node) bool { return n.Labels[labnode.Label] != os.Getenv("ADVERSE_NODE") },
	)
	if err != nil || len(nodes.Items) != 1 {
		panic("the workload that fills a node needs exactly one node for the workloads")
	}
	node := &nodes.Items[0]
	if err := k8s.List(ctx, &pods); err != nil {
		panic(err)
	}
	free := memory.FromQuantity(*node.Status.Allocatable.Memory())
	for i := range pods.Items {
		phase := pods.Items[i].Status.Phase
		if pods.Items[i].Spec.NodeName != node.Name || phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		for _, c := range pods.Items[i].Spec.Containers {
			free = free.Minus(memory.FromQuantity(*c.Resources.Requests.Memory()))
		}
	}
	return free
}
