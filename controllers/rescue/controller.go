// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rescue raises the limit of a container for a while when the kernel is about to OOM-kill the container; such a
// raise is called a loan. Agents write alarms into MemorySnapshots; this package handles them outside of the workload
// queue, to avoid its delay. internal/rescue decides about a loan, and the workload reconciler stores the loan and
// sends one resize. It runs on the leader.
package rescue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	lending "github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/workload"
)

// The kustomize component config/rbac/resize-pods grants the resize of pods. A rescue needs no further permission: its
// inputs are in memfit's caches, and the loan is stored in the workload's MemoryCheckpoint.

const (
	// workers is the number of alarms handled in parallel. A loan is two requests of some 10 to 100 ms, and replicas often
	// burst together.
	workers = 16
	// retryDelay is the delay before a retry if the workload is not loaded or a write failed. Retries end when the alarm
	// is stale.
	retryDelay = 50 * time.Millisecond
	// warnEvery is the least time between two Events about the same refusal for one container.
	warnEvery = 5 * time.Minute
	// nodeIndex is the cache index of pods by node; the API server has a field of this name.
	nodeIndex = "spec.nodeName"
)

// Lender stores loans and sends their resizes. The workload reconciler implements it.
type Lender interface {
	Lend(
		ctx context.Context, ref memory.WorkloadRef, pod *corev1.Pod, container string,
		decide func(workloadctl.LoanFacts) (*lending.Loan, string),
	) error
}

// Controller handles alarms.
type Controller struct {
	Reader  client.Reader       // reads nodes, and pods by [nodeIndex]
	Indexer client.FieldIndexer // adds [nodeIndex] to the cache; nil: Reader needs no index
	// Pods returns pods of the cache, which must not be changed.
	Pods interface {
		Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error)
	}
	Resolver *policy.Resolver // resolves profiles and owners
	Inbox    *inbox.Inbox     // has the resolved workload of each pod
	// Constraints returns other bounds of a container's memory. nil: no bounds.
	Constraints interface {
		Facts(ctx context.Context, w memory.WorkloadRef, containers []string, pod *corev1.Pod) (constraints.Facts, error)
	}
	Lender   Lender
	Recorder workloadctl.EventRecorder
	Metrics  *Metrics
	Clock    clock.PassiveClock

	once  sync.Once
	queue workqueue.TypedDelayingInterface[types.NamespacedName]
	// alarms has the queued snapshots, by the pod's name.
	alarms sync.Map

	handled *lru.Cache            // sequence of the last decided alarm, by the pod's UID
	warned  *cache.LRUExpireCache // refusals that have an Event
}

// warning identifies refusals, reported once in warnEvery.
type warning struct {
	pod       types.UID
	container string
	cause     lending.Cause
}

func (c *Controller) init() {
	c.once.Do(func() {
		c.queue = workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: "rescue"})
		c.handled, c.warned = lru.New(maxHandled), cache.NewLRUExpireCacheWithClock(maxHandled, c.Clock)
	})
}

// NeedLeaderElection returns true, because only one replica may lend.
func (*Controller) NeedLeaderElection() bool { return true }

// OnAlarm queues a snapshot with a new alarm. It does not wait.
func (c *Controller) OnAlarm(s *v1alpha1.MemorySnapshot) {
	c.init()
	key := client.ObjectKeyFromObject(s)
	c.alarms.Store(key, s)
	c.queue.Add(key)
}

// Start handles alarms until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	c.init()
	ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithName("rescue"))
	if c.Indexer != nil {
		if err := c.Indexer.IndexField(ctx, &corev1.Pod{}, nodeIndex, byNode); err != nil {
			return fmt.Errorf("indexing pods by node: %w", err)
		}
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.work(ctx) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

func byNode(obj client.Object) []string {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

func (c *Controller) work(ctx context.Context) {
	for {
		key, over := c.queue.Get()
		if over {
			return
		}
		if s, found := c.alarms.LoadAndDelete(key); found {
			snapshot, _ := s.(*v1alpha1.MemorySnapshot)
			if err := c.Handle(ctx, snapshot); err != nil {
				c.retry(ctx, key, snapshot, err)
			}
		}
		c.queue.Done(key)
	}
}

// retry queues an alarm again after an error, unless the alarm is stale or a newer one is queued.
func (c *Controller) retry(ctx context.Context, key types.NamespacedName, s *v1alpha1.MemorySnapshot, err error) {
	if !errors.Is(err, workloadctl.ErrNotLoaded) {
		c.Metrics.count(s, outcomeFailed)
		logf.FromContext(ctx).Error(err, "Could not lend memory", "pod", key)
	}
	if c.Clock.Since(s.Status.Alarm.Time.Time) > lending.StaleAfter {
		return
	}
	c.alarms.LoadOrStore(key, s)
	c.queue.AddAfter(key, retryDelay)
}

// Handle decides about the alarm of a snapshot and lends. After an error the caller may retry.
func (c *Controller) Handle(ctx context.Context, s *v1alpha1.MemorySnapshot) error {
	c.init()
	began := c.Clock.Now()
	pod, err := c.Pods.Pod(ctx, client.ObjectKeyFromObject(s))
	switch {
	case err != nil:
		return fmt.Errorf("reading the pod of an alarm: %w", err)
	case pod == nil || s.Status.Alarm == nil:
		return nil
	case !s.IsOf(pod.UID, pod.Spec.NodeName):
		c.Metrics.count(s, outcomeForeign)
		return nil
	}
	a := alarm{Alarm: lending.FromAPI(s.Status.Alarm), pod: pod, began: began}
	if err := c.gather(ctx, &a); err != nil || !a.governed {
		return err
	}
	return c.lend(ctx, &a)
}

// alarm is an alarm with the cached facts about its container.
type alarm struct {
	lending.Alarm
	pod   *corev1.Pod
	began time.Time
	// governed is true if a profile sizes the container. The other fields are valid only then.
	governed bool
	ref      memory.WorkloadRef
	view     workload.Rescue
	node     lending.Node
	left     memory.Bytes // allocatable memory of the node without the requests of its pods
	paused   string
	refusal  *lending.Refusal // of the last decision; nil: a loan
	loan     *lending.Loan    // of the last decision; nil: a refusal
	owner    memory.Workload  // of the last decision
}

func (c *Controller) gather(ctx context.Context, a *alarm) error {
	resolved, err := c.Resolver.ResolveRemembered(ctx, a.pod, c.Inbox.Kept(a.pod.UID))
	if err != nil {
		return fmt.Errorf("finding the profile of pod %s/%s: %w", a.pod.Namespace, a.pod.Name, err)
	}
	if resolved.Profile == nil {
		return nil
	}
	a.ref, a.paused = resolved.Ref, resolved.Paused
	var facts constraints.Facts
	if c.Constraints != nil {
		names := workload.ContainersOf(&a.pod.Spec)
		if facts, err = c.Constraints.Facts(ctx, a.ref, names, a.pod); err != nil {
			return fmt.Errorf("reading the constraints of %s: %w", a.ref, err)
		}
	}
	a.view, a.governed = workload.RescueOf(resolved.Profile, a.pod, a.Container, &facts, a.paused)
	if !a.governed || !a.view.Policy.Enabled {
		c.Metrics.count(a.pod, string(lending.NotEnabled))
		a.governed = false
		return nil
	}
	return c.nodeOf(ctx, a)
}

func (c *Controller) nodeOf(ctx context.Context, a *alarm) error {
	name := a.pod.Spec.NodeName
	node := &corev1.Node{}
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	var pods corev1.PodList
	if err := c.Reader.List(ctx, &pods, client.MatchingFields{nodeIndex: name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the pods of node %s: %w", name, err)
	}
	a.node.ShortOfMemory = slices.ContainsFunc(node.Status.Conditions, func(n corev1.NodeCondition) bool {
		return n.Type == corev1.NodeMemoryPressure && n.Status == corev1.ConditionTrue
	})
	a.left = memory.FromQuantity(*node.Status.Allocatable.Memory())
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			a.left = a.left.Minus(constraints.Total(p, nil).Request)
		}
	}
	return nil
}

func (c *Controller) lend(ctx context.Context, a *alarm) error {
	err := c.Lender.Lend(ctx, a.ref, a.pod, a.Container, func(in workloadctl.LoanFacts) (*lending.Loan, string) {
		return c.decide(a, in)
	})
	var refused *workloadctl.LoanRefusedError
	switch {
	case errors.As(err, &refused):
		c.refusedByServer(ctx, a, refused.Why)
	case errors.Is(err, workloadctl.ErrPodChanged):
		c.Metrics.count(a.pod, outcomeChanged)
	case err != nil:
		return err
	case a.refusal != nil:
		c.refused(ctx, a)
	default:
		c.lent(ctx, a)
	}
	// The alarm is decided, whether lent or refused. Alarms of one pod are handled sequentially.
	c.handled.Add(a.pod.UID, max(c.lastHandled(a.pod.UID), a.Sequence))
	return nil
}

// decide is called with the workload's loans and budget, while its state is locked and no other loan is decided.
func (c *Controller) decide(a *alarm, in workloadctl.LoanFacts) (*lending.Loan, string) {
	a.owner, a.refusal, a.loan = in.Owner, nil, nil
	now := c.Clock.Now()
	known, terms, node := a.view.Known, a.view.Policy, a.node
	node.Loans = in.LastHour
	known.Demand, known.DemandAt = in.Demand, in.DemandAt
	known.Handled, known.Loans = c.lastHandled(a.pod.UID), len(in.Loans)
	terms.Shares = append(slices.Clip(terms.Shares), lending.Share{Cause: lending.NodeFull, Left: a.left.Minus(in.OnNode)})
	if in.Bounded {
		terms.Shares = append(terms.Shares, lending.Share{Cause: lending.ChangeBudget, Left: in.Budget})
	}
	loans := slices.DeleteFunc(slices.Clone(in.Loans), func(l lending.Loan) bool { return l.UID != a.pod.UID })
	a.loan, a.refusal = lending.Decide(a.Alarm, known, terms, node, loans, now)
	if a.loan == nil {
		return nil, ""
	}
	a.loan.Pod, a.loan.UID, a.loan.Node, a.loan.Program = a.pod.Name, a.pod.UID, a.pod.Spec.NodeName, in.Program
	a.loan.From, a.loan.To = a.view.Size, a.view.With(a.loan.To.Limit)
	return a.loan, a.loan.Note(&a.Alarm)
}

// maxHandled limits the entries of handled and warned. The oldest are dropped, whose alarms are stale.
const maxHandled = 10_000

func (c *Controller) lastHandled(pod types.UID) int64 {
	last, _ := c.handled.Get(pod)
	sequence, _ := last.(int64)
	return sequence
}
