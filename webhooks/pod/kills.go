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
	// pendingFor is how long a kill is pending: by then the leader, even a new one, has recorded it. Afterwards only the
	// recommendation counts.
	pendingFor = 5 * time.Minute
	// maxPending bounds identities, and maxPendingKills the kills of each.
	maxPending      = 10_000
	maxPendingKills = 16
	// failedPage pods are decoded at a time, some 2 MiB, in at most maxFailedPages pages per read.
	failedPage     = 100
	maxFailedPages = 10
)

// PendingKills stores the OOM kills of the last minutes in pods that are known by their identity. The retry of such a
// pod is created within moments of the kill, by a controller that may see it before memfit's informers. That controller
// has seen the failed pod in the API server, so a consistent read that begins after the retry was sent also sees it:
// [PendingKills.Read]. Some controllers delete the failed pod first, as Spark does with executors. So every replica
// also watches failed pods, and stores their kills: [PendingKills.Follow]. A nil PendingKills has none.
type PendingKills struct {
	// Resolver resolves identities.
	Resolver *policy.Resolver
	// APIReader reads from the API server, never from a cache.
	APIReader client.Reader
	// NodeShort returns when a node became short of memory, as [constraintindex.Index.NodeShort].
	NodeShort func(node string) time.Time
	// Clock returns the time.
	Clock clock.PassiveClock

	reads sharedReads
	mu    sync.Mutex
	of    map[memory.WorkloadRef][]pendingKill
}

// pendingKill is a kill, with the container's program and its node.
type pendingKill struct {
	memory.OOMKill
	program inject.Program
	node    string
}

// Follow observes the pods of a cache, which should contain only failed pods, until ctx ends.
func (p *PendingKills) Follow(ctx context.Context, failed cache.Cache) error {
	select {
	case <-p.Resolver.Built(): // before that no profile governs any pod
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

// Read observes the failed pods of an identity in the API server, as of the call or later. It returns an error after
// [readTimeout]. Concurrent calls share reads.
func (p *PendingKills) Read(ctx context.Context, namespace string, of *identity.Identity) error {
	selector := of.Selector()
	return p.reads.await(ctx, readKey{namespace, selector.String()}, func(ctx context.Context) error {
		return p.list(ctx, namespace, selector)
	})
}

// list observes the failed pods of a selector. Without a resource version, a list is consistent.
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
		return p.Resolver.ResolveCached(ctx, pod, policy.Kept{})
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
	if err != nil || !identity.Is(resolved.Ref) || resolved.Profile == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(now)
	all, known := p.of[resolved.Ref]
	if !known && len(p.of) >= maxPending {
		return
	}
	if p.of == nil {
		p.of = map[memory.WorkloadRef][]pendingKill{}
	}
	for _, k := range kills {
		if !slices.ContainsFunc(all, func(o pendingKill) bool { return o.Container == k.Container }) {
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b pendingKill) int { return a.Time.Compare(b.Time) })
	p.of[resolved.Ref] = all[max(len(all)-maxPendingKills, 0):]
}

// forget drops old kills.
func (p *PendingKills) forget(now time.Time) {
	maps.DeleteFunc(p.of, func(_ memory.WorkloadRef, all []pendingKill) bool {
		return !slices.ContainsFunc(all, func(k pendingKill) bool { return k.pending(now) })
	})
}

func (k *pendingKill) pending(now time.Time) bool { return now.Sub(k.Time) < pendingFor }

// killsIn returns the kills of an ended pod. A node's clock may be wrong, so kill times are at most now. A pod may have
// been killed before an in-place resize took effect, so the limit from its creation counts: otherwise the size would be
// a multiple of a limit that the container never had.
func killsIn(pod *corev1.Pod, now time.Time) (all []pendingKill) {
	var ledger oom.Ledger
	for _, k := range ledger.Update(oom.Observe(pod), nil, now) {
		if k.Time.After(now) {
			k.Time = now
		}
		if created := inject.LimitAtCreation(pod, k.Container.Container); created > 0 {
			k.Limit = min(k.Limit, created)
		}
		of := pendingKill{
			OOMKill: k, program: inject.ProgramOf(pod, k.Container.Container, true), node: pod.Spec.NodeName,
		}
		if of.pending(now) && k.Limit > 0 && k.Kind != memory.OOMPodLimit && k.Kind != memory.OOMHeapAbort {
			all = append(all, of)
		}
	}
	return all
}

// Of returns the pending kills of a workload by container, oldest first; not those on nodes that are short of memory,
// because only the leader can determine which of them were at the limit: it knows how much was in use.
func (p *PendingKills) Of(ref memory.WorkloadRef) map[string][]pendingKill {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var of map[string][]pendingKill
	for _, k := range p.of[ref] {
		if !k.pending(p.Clock.Now()) || oom.ShortAt(p.NodeShort(k.node), k.Time) {
			continue
		}
		if of == nil {
			of = map[string][]pendingKill{}
		}
		of[k.Container.Container] = append(of[k.Container.Container], k)
	}
	return of
}

// raised returns the offers of a recommendation, raised to cover the pending kills. It does not change offers.
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

// sizeAfter returns the size after kills of a program, as the leader will compute it from them alone.
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
