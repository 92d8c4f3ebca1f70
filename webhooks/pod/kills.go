// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/recommend"
)

const (
	// pendingFor is how long a kill is pending. After this time even a new leader has recorded it in the recommendation.
	pendingFor      = 5 * time.Minute
	maxPending      = 10_000 // identities
	maxPendingKills = 16     // per identity
	failedPage      = 100    // pods per page of a read, about 2 MiB
	maxFailedPages  = 10     // per read
)

// PendingKills stores the OOM kills of the last minutes in pods with an identity. The retry of such a pod may be
// created before memfit's informers show the kill. The controller that creates the retry has seen the failed pod in the
// API server, so a consistent read that begins after the retry was sent shows that pod as well: [PendingKills.Read].
// Some controllers delete the failed pod before they create the retry, as Spark does with executors, so every replica
// also watches failed pods: [PendingKills.Follow]. A nil PendingKills is empty.
type PendingKills struct {
	// Resolver resolves identities.
	Resolver *policy.Resolver
	// APIReader reads from the API server, never from a cache.
	APIReader client.Reader
	// NodePressureSince is [constraintindex.Index.NodePressureSince].
	NodePressureSince func(node string) time.Time
	// Clock returns the time.
	Clock clock.PassiveClock

	reads      sharedReads
	mu         sync.Mutex
	byIdentity map[memory.WorkloadRef][]pendingKill
}

// pendingKill is an OOM kill, with the container's program and node.
type pendingKill struct {
	memory.OOMKill
	program inject.Program
	node    string
}

// Follow observes the pods of a cache, which should contain only failed pods, until ctx ends.
func (p *PendingKills) Follow(ctx context.Context, failed cache.Cache) error {
	select {
	case <-p.Resolver.Built(): // before that, no profile governs any pod
	case <-ctx.Done():
		return nil
	}
	observe := func(pod *corev1.Pod) { p.Observe(ctx, pod) }
	if _, err := informers.Watch(ctx, failed, &corev1.Pod{}, informers.Handler[*corev1.Pod]{
		Seen: observe, Changed: func(_, after *corev1.Pod) { observe(after) },
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Read reads the failed pods of an identity from the API server, as of the call or later, and stores their kills. It
// returns an error after [readTimeout]. Concurrent calls share reads.
func (p *PendingKills) Read(ctx context.Context, namespace string, of *identity.Identity) error {
	selector := of.Selector()
	return p.reads.await(ctx, readKey{namespace, selector.String()}, func(ctx context.Context) error {
		return p.list(ctx, namespace, selector)
	})
}

// list observes the failed pods that match a selector. The read is consistent, because it sets no resource version.
func (p *PendingKills) list(ctx context.Context, namespace string, of labels.Selector) error {
	options := &client.ListOptions{
		Namespace: namespace, LabelSelector: of, FieldSelector: informers.InPhase(corev1.PodFailed), Limit: failedPage,
	}
	for range maxFailedPages {
		var page corev1.PodList
		if err := p.APIReader.List(ctx, &page, options); err != nil {
			return fmt.Errorf("reading failed pods with labels %q from the API server: %w", of, err)
		}
		for i := range page.Items {
			p.observe(ctx, &page.Items[i], p.Resolver.Resolve)
		}
		if options.Continue = page.Continue; page.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf(
		"more than %d pods with labels %q have failed in namespace %s; delete failed pods", maxFailedPages*failedPage, of,
		namespace,
	)
}

// Observe stores the kills in a pod's status.
func (p *PendingKills) Observe(ctx context.Context, pod *corev1.Pod) {
	p.observe(ctx, pod, func(ctx context.Context, pod metav1.Object) (policy.Resolution, error) {
		return p.Resolver.ResolveCached(ctx, pod, policy.Remembered{})
	})
}

func (p *PendingKills) observe(
	ctx context.Context, pod *corev1.Pod, resolve func(context.Context, metav1.Object) (policy.Resolution, error),
) {
	now := p.Clock.Now()
	kills := killsIn(pod, now)
	if len(kills) == 0 {
		return
	}
	resolved, err := resolve(ctx, pod)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("Could not resolve a failed pod", "pod", pod.Name, "err", err.Error())
	}
	if err != nil || !identity.IsIdentity(resolved.Ref) || resolved.Profile == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropOld(now)
	all, known := p.byIdentity[resolved.Ref]
	if !known && len(p.byIdentity) >= maxPending {
		return
	}
	if p.byIdentity == nil {
		p.byIdentity = map[memory.WorkloadRef][]pendingKill{}
	}
	for _, k := range kills {
		if !slices.ContainsFunc(all, func(o pendingKill) bool { return o.Container == k.Container }) {
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b pendingKill) int { return a.Time.Compare(b.Time) })
	p.byIdentity[resolved.Ref] = all[max(len(all)-maxPendingKills, 0):]
}

// dropOld drops old kills.
func (p *PendingKills) dropOld(now time.Time) {
	maps.DeleteFunc(p.byIdentity, func(_ memory.WorkloadRef, all []pendingKill) bool {
		return !slices.ContainsFunc(all, func(k pendingKill) bool { return k.pending(now) })
	})
}

func (k *pendingKill) pending(now time.Time) bool { return now.Sub(k.Time) < pendingFor }

// killsIn returns the kills of an ended pod. A node's clock may be wrong, so kill times are at most now. A kill may
// precede the effect of an in-place resize, so its limit is at most the one at the pod's creation.
func killsIn(pod *corev1.Pod, now time.Time) (all []pendingKill) {
	var ledger oom.Ledger
	for _, k := range ledger.Update(oom.Observe(pod), nil, now) {
		if k.Time.After(now) {
			k.Time = now
		}
		if created := inject.LimitAtCreation(pod, k.Container.Container); created > 0 {
			k.Limit = min(k.Limit, created)
		}
		kill := pendingKill{
			OOMKill: k, program: inject.ProgramOf(pod, k.Container.Container, true), node: pod.Spec.NodeName,
		}
		if kill.pending(now) && k.Limit > 0 && k.Kind != memory.OOMPodLimit && k.Kind != memory.OOMHeapAbort {
			all = append(all, kill)
		}
	}
	return all
}

// Of returns the pending kills of a workload by container, oldest first. It omits kills on a node that was short of
// memory: only the leader can determine which of these were at the limit, because it knows how much was in use.
func (p *PendingKills) Of(ref memory.WorkloadRef) map[string][]pendingKill {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var byContainer map[string][]pendingKill
	for _, k := range p.byIdentity[ref] {
		if !k.pending(p.Clock.Now()) || oom.UnderPressureAt(p.NodePressureSince(k.node), k.Time) {
			continue
		}
		if byContainer == nil {
			byContainer = map[string][]pendingKill{}
		}
		byContainer[k.Container.Container] = append(byContainer[k.Container.Container], k)
	}
	return byContainer
}

// raised returns a copy of the offers of a recommendation, raised to cover the pending kills.
func raised(
	resolved policy.Resolution, offers map[string]inject.Offer, pending map[string][]pendingKill, now time.Time,
) map[string]inject.Offer {
	if len(pending) == 0 || resolved.Paused != "" || !resolved.Profile.Spec.Sizing.Mode.SizesNewPods() {
		return offers
	}
	all := make(map[string]inject.Offer, len(offers)+len(pending))
	maps.Copy(all, offers)
	for name, kills := range pending {
		program := kills[len(kills)-1].program
		size := sizeAfter(resolved, name, program, kills, now)
		if size.Limit == 0 || program.Owner.Limit == 0 {
			continue
		}
		offer, found := all[name]
		if !found {
			offer = inject.Offer{Program: program.ID, Owner: program.Owner}
		}
		all[name] = offer.Raised(program, size)
	}
	return all
}

// sizeAfter returns the size that the leader will compute for a program from these kills alone.
func sizeAfter(
	resolved policy.Resolution, name string, program inject.Program, kills []pendingKill, now time.Time,
) memory.Size {
	container := resolved.Profile.Container(name, resolved.Annotations)
	in := recommend.Input{Policy: container.SizePolicy(), Now: now}
	for _, k := range kills {
		if k.program.ID == program.ID {
			in.Kills = append(in.Kills, k.OOMKill)
			in.Current = memory.Size{Limit: max(in.Current.Limit, k.Limit), Request: program.Owner.Request}
		}
	}
	return recommend.Evaluate(in).Size
}
