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

// steady is how long all replicas must be ready without a restart to count as well.
const steady = 20 * time.Second

// record is what was seen of one workload beside memfit.
type record struct {
	// asked is the highest limit of the container the workload is about: in a pod's spec or recommended.
	asked memory.Bytes
	// given is the highest that was in a pod's spec.
	given memory.Bytes
	// other is the highest limit another container had.
	other memory.Bytes
	// disturbed are pods that went without the test having deleted them; deleted are those that it did delete.
	disturbed, deleted map[types.UID]bool
	// request and use are those of the pod whose request covers its use worst, at the last look.
	request, use memory.Bytes
	// recommended is the request that a new pod would get.
	recommended memory.Bytes
	// wellAfter is the time until all replicas had been ready for a while, and no container died afterwards; 0: never.
	wellAfter time.Duration
	// told are the pods that were deleted because memfit reported that they had to be. It has said so of toldOf since
	// toldSince.
	told      int
	toldOf    string
	toldSince time.Time
	// ended: a run has succeeded, and is not measured any more.
	ended bool
	// texts is what the recommendation said last.
	texts string
	// refused are pods that could not be created, in the API server's words.
	refused string
	// seen are the pods that the last look returned, notes what the table adds to the result.
	seen  []corev1.Pod
	notes []string

	// measured are the times at which the kubelet measured each pod since the workload was well, worst is the pod of
	// request and use. settling: a resize is asked for and not effective.
	measured map[types.UID]map[time.Time]bool
	worst    types.UID
	settling bool

	pods     map[types.UID]bool
	restarts map[types.UID]int32
	since    time.Time // the last restart, or the last time somebody was not ready
}

func newRecord(now time.Time) *record {
	return &record{
		disturbed: map[types.UID]bool{}, deleted: map[types.UID]bool{}, pods: map[types.UID]bool{},
		restarts: map[types.UID]int32{}, since: now, measured: map[types.UID]map[time.Time]bool{},
	}
}

// seenEnough reports whether it is time to judge. What is waited for is what happened on the node: seconds alone say
// little of one that is slow, where the kubelet measures and resizes late. What got well just before its time was over
// is looked at as long as any other, because memfit raises a request for what four readings have shown.
func (r *record) seenEnough(w *workload, since time.Duration) bool {
	within := w.within + r.heldUp()
	if since > 2*within+after && (w.staysIll || r.wellAfter == 0 || since > r.wellAfter+2*after) {
		return true
	}
	if w.staysIll || r.wellAfter == 0 {
		return since > within && (!w.staysIll || r.died() >= w.deaths)
	}
	measured := r.ended || len(r.measured[r.worst]) >= measurements
	// A child that has just begun to work was not read by memfit before the test read it.
	covered := max(r.request, r.recommended) >= r.use || since > r.wellAfter+3*after
	return since > r.wellAfter+after && measured && covered && !r.settling
}

// heldUp is how much longer it may take because of a kubelet that gives a pod no resize which arrives while its
// container is down: memfit reports within some restarts that a pod may have to be deleted, which is done after a
// minute, and reports it again of the next. One that it never sees running is given up after five minutes.
func (r *record) heldUp() time.Duration {
	pods := r.told
	if strings.Contains(r.texts, "kubernetes/kubernetes#138760") {
		pods++
	}
	return min(time.Duration(pods)*3*time.Minute, 6*time.Minute)
}

// measurements are as many as a kubelet makes in the time that a workload which is well is watched.
const measurements = 5

// died is how often containers were started again.
func (r *record) died() (n int32) {
	for _, restarts := range r.restarts {
		n += restarts
	}
	return n
}

// look takes in the state of the namespace.
func (r *record) look(ctx context.Context, w *workload, namespace string, began time.Time) error {
	var pods corev1.PodList
	var recs v1alpha1.MemoryRecommendationList
	inside := client.InNamespace(namespace)
	if err := k8s.List(ctx, &pods, inside, client.MatchingLabels{"app": appName}); err != nil {
		return err
	}
	if err := k8s.List(ctx, &recs, inside); err != nil {
		return err
	}
	now := time.Now()
	r.seen = pods.Items
	r.follow(pods.Items)
	r.sizes(pods.Items, &recs)
	if r.well(w, pods.Items, now) && r.wellAfter == 0 && now.Sub(r.since) >= steady {
		r.wellAfter = now.Sub(began)
	}
	r.cover(pods.Items)
	return r.refusals(ctx, namespace)
}

// follow notices restarts, and pods that went.
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
			r.wellAfter, r.measured = 0, map[types.UID]map[time.Time]bool{} // it only seemed to be well
		}
	}
	for uid := range r.pods {
		if !live[uid] && !r.deleted[uid] {
			r.disturbed[uid] = true
		}
	}
	maps.Copy(r.pods, live)
}

func (r *record) sizes(pods []corev1.Pod, recs *v1alpha1.MemoryRecommendationList) {
	saw := func(container string, limit memory.Bytes) {
		if container == "app" {
			r.asked = max(r.asked, limit)
		} else {
			r.other = max(r.other, limit)
		}
	}
	for i := range pods {
		for _, c := range pods[i].Spec.Containers {
			limit := memory.FromQuantity(*c.Resources.Limits.Memory())
			saw(c.Name, limit)
			if c.Name == "app" {
				r.given = max(r.given, limit)
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
				saw(c.Container, memory.FromQuantity(*c.Recommended.Limit))
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

// well reports whether all replicas are ready; a CronJob's are well when one has succeeded.
func (r *record) well(w *workload, pods []corev1.Pod, now time.Time) bool {
	ready := 0
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodSucceeded {
			r.since, r.ended = now.Add(-steady), true // it has done what it was to do
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

// cover compares requests with what the kubelet measures now, of the pod that is covered worst.
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
		if r.wellAfter > 0 {
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

// refusals are what keeps new pods from starting: the worst that an admission webhook can do.
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

// measurement is what a container used when the kubelet measured it.
type measurement struct {
	rss memory.Bytes
	at  time.Time
}

// measured are the last measurements of all containers, by pod.
type measured map[types.UID]map[string]measurement

// nodeUsage is what the kubelet measures, read once for all workloads.
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

// freeForRequests is what the requests of the node's pods leave of its memory.
func freeForRequests() memory.Bytes {
	ctx := context.Background()
	var nodes corev1.NodeList
	var pods corev1.PodList
	err := k8s.List(ctx, &nodes)
	// The workloads run on the node with that label, or on the one without.
	nodes.Items = slices.DeleteFunc(
		nodes.Items, func(n corev1.Node) bool { return n.Labels[labnode.Label] != os.Getenv("ADVERSE_NODE") },
	)
	if err != nil || len(nodes.Items) != 1 {
		panic("the workload that fills a node needs one node that the workloads may run on")
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
