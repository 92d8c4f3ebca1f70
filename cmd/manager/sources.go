// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	usagectl "github.com/memfit/memfit/controllers/usage"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
	"github.com/memfit/memfit/internal/usage/kubelet"
	"github.com/memfit/memfit/internal/usage/metricsapi"
	"github.com/memfit/memfit/internal/usage/prometheus"
)

// The names of sources, for --usage-sources.
const (
	fromKubelet    = "kubelet"
	fromPrometheus = "prometheus"
	// fromMetricsAPI has only working sets, for clusters in which pods cannot reach kubelets. It needs the component
	// config/rbac/read-metrics-api.
	fromMetricsAPI = "metrics-api"
)

// sources are the flags for sources of usage.
type sources struct {
	names, prometheusURL, prometheusToken, prometheusCA, prometheusSelector string

	killCounters, prometheusSpan, prometheusStep time.Duration
	rollbackQueries                              bool
	prometheusHeaders, prometheusQueries         assignments
	// prometheus is the source from these flags; nil: not configured.
	prometheus *prometheus.Source
}

func (s *sources) bind(f *flag.FlagSet) {
	f.StringVar(&s.names, "usage-sources", fromKubelet,
		"sources of current usage, separated by commas, the best first; a node's usage is from the first that answers: "+
			"kubelet, prometheus, metrics-api (working set only)")
	f.DurationVar(&s.killCounters, "kill-counters-interval", time.Minute,
		"interval between readings of the kubelets' /metrics/cadvisor for kills of child processes and exact demand "+
			"(RBAC nodes/metrics), about 40 KiB per container; 0 disables them, and then no limit is lowered")
	f.StringVar(&s.prometheusURL, "prometheus-url", "",
		"base URL of a Prometheus HTTP API with the usage of workloads before memfit was installed; empty: memfit starts "+
			"without history")
	f.StringVar(&s.prometheusToken, "prometheus-bearer-token-file", "",
		"file with the bearer token for --prometheus-url; reloaded when renewed")
	f.StringVar(&s.prometheusCA, "prometheus-ca-file", "",
		"PEM file with the authorities that sign the certificate of --prometheus-url; empty: the system's")
	f.StringVar(&s.prometheusSelector, "prometheus-selector", "",
		`label matchers that select this cluster's series in the built-in queries, if --prometheus-url has series of `+
			`several clusters, for example cluster="prod-1"`)
	f.BoolVar(&s.rollbackQueries, "rollback-queries", false,
		"send the sizing.disruption.rollbackQuery of profiles to --prometheus-url; authors of profiles can then infer "+
			"any series in Prometheus from whether memfit lowers a limit")
	f.DurationVar(&s.prometheusSpan, "prometheus-history", 7*24*time.Hour,
		"how much history is read for a new workload; 0: none")
	f.DurationVar(&s.prometheusStep, "prometheus-step", 5*time.Minute,
		"resolution of --prometheus-history: memfit reads the highest and lowest value of each step; at least 15s")
	f.Var(&s.prometheusHeaders, "prometheus-header", "NAME=VALUE of a header to send, for example X-Scope-OrgID=tenant; "+
		"may be repeated")
	f.Var(&s.prometheusQueries, "prometheus-query",
		"NAME=TEMPLATE instead of a built-in query (RSS, WorkingSet, Swap, Usage, Time, PeakDemand, PeakRSS, "+
			"PeakWorkingSet, LowDemand, LowRSS, LowWorkingSet); may be repeated")
}

func (s *sources) validate() error {
	var errs refusals
	for _, name := range s.list() {
		errs.when(name != fromKubelet && name != fromPrometheus && name != fromMetricsAPI,
			"--usage-sources=%s: %q must be kubelet, prometheus or metrics-api", s.names, name)
		errs.when(name == fromPrometheus && s.prometheusURL == "",
			"--usage-sources=%s: prometheus needs --prometheus-url", s.names)
	}
	errs.when(s.killCounters != 0 && (s.killCounters < 10*time.Second || s.killCounters > 5*time.Minute),
		"--kill-counters-interval=%s: must be 10s to 5m, or 0 to disable it: the kubelet counts every 10s or so, a reading "+
			"is large, and demand is exact for 10m after a reading", s.killCounters)
	errs.when(s.prometheusSpan < 0 || s.prometheusSpan > 35*24*time.Hour,
		"--prometheus-history=%s: must be at most 840h, the 35 days that memfit keeps, or 0 to read none",
		s.prometheusSpan)
	errs.when(s.prometheusStep < 15*time.Second || s.prometheusStep > time.Hour,
		"--prometheus-step=%s: must be 15s to 1h", s.prometheusStep)
	errs.when(s.rollbackQueries && s.prometheusURL == "", "--rollback-queries needs --prometheus-url")
	if s.prometheusURL != "" || len(s.prometheusQueries) > 0 {
		var err error
		s.prometheus, err = prometheus.New(prometheus.Options{
			URL: s.prometheusURL, BearerTokenFile: s.prometheusToken, CAFile: s.prometheusCA, Headers: s.prometheusHeaders,
			Queries: prometheus.Queries(s.prometheusQueries), Selector: s.prometheusSelector,
		})
		errs.when(err != nil, "--prometheus-url and its related flags: %w", err)
	}
	return errors.Join(errs...)
}

func (s *sources) list() []string { return strings.Split(s.names, ",") }

// assignments is a repeatable flag NAME=VALUE.
type assignments map[string]string

// String implements flag.Value. Values may be secrets, so it returns only names.
func (a *assignments) String() string { return strings.Join(slices.Sorted(maps.Keys(*a)), ",") }

// Set implements flag.Value.
func (a *assignments) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write it as NAME=VALUE")
	}
	if *a == nil {
		*a = assignments{}
	}
	(*a)[name] = value
	return nil
}

// watchUsage adds the readers of usage and kill counters to the manager.
func watchUsage(mgr ctrl.Manager, u *usagectl.Collector, o options) (*usagectl.Collector, error) {
	identity := mgr.GetConfig()
	if o.usageAccount != "" {
		if o.namespace == "" {
			return nil, errors.New("--usage-service-account needs POD_NAMESPACE in the environment: the ServiceAccount is in " +
				"memfit's own namespace. Outside of a cluster, set --usage-service-account= to show kubelets your own identity")
		}
		t, err := requestTokens(mgr.GetConfig(), mgr.GetHTTPClient(), o.namespace, o.usageAccount)
		if err != nil {
			return nil, err
		}
		identity = asUsageReader(mgr.GetConfig(), t)
	}
	kubelets, err := kubelet.New(identity, kubelet.Options{
		CAFile: o.kubeletCAFile, InsecureSkipKubeletTLSVerify: o.kubeletInsecure,
		NoCounters: o.sources.killCounters == 0, Name: namer(context.Background(), u), Now: time.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to read kubelets: %w", err)
	}
	sources, err := o.sources.usage(mgr, kubelets)
	if err != nil {
		return nil, err
	}
	u.Collector = &usage.Collector{Sources: sources, Now: time.Now, Spread: o.usageInterval / 3}
	if err := mgr.Add(u); err != nil {
		return nil, fmt.Errorf("adding the usage collector: %w", err)
	}
	if o.sources.killCounters == 0 {
		return u, nil
	}
	counters := &usagectl.Collector{
		Reader: u.Reader, Inbox: u.Inbox, Queue: u.Queue, Metrics: u.Metrics, Clock: u.Clock,
		Interval: o.sources.killCounters,
		Collector: &usage.Collector{
			Sources: []usage.Source{kubelets.KillCounters(time.Now)}, Now: time.Now, Spread: o.sources.killCounters / 2,
			Concurrency: 4, MaxBackoff: 30 * time.Minute,
		},
	}
	if err := mgr.Add(counters); err != nil {
		return nil, fmt.Errorf("adding the reader of kill counters: %w", err)
	}
	return u, nil
}

// usage returns the sources of current usage, best first.
func (s *sources) usage(mgr ctrl.Manager, kubelets *kubelet.Source) (all []usage.Source, err error) {
	for _, name := range s.list() {
		switch name {
		case fromKubelet:
			all = append(all, kubelets)
		case fromPrometheus:
			all = append(all, s.prometheus)
		case fromMetricsAPI:
			metrics, err := metricsapi.New(mgr.GetConfig(), podsByName(mgr.GetClient()), time.Now)
			if err != nil {
				return nil, fmt.Errorf("preparing the usage source %s: %w", name, err)
			}
			all = append(all, metrics)
		}
	}
	return all, nil
}

// namer returns a function that finds a container by its ID in the cached pod's status.
func namer(ctx context.Context, u *usagectl.Collector) kubelet.Namer {
	return func(uid types.UID, id string) (memory.ContainerRef, bool) {
		key, known := u.Inbox.Pod(uid)
		var pod corev1.Pod
		if !known || u.Reader.Get(ctx, key, &pod) != nil || pod.UID != uid {
			return memory.ContainerRef{}, false
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if strings.HasSuffix(s.ContainerID, "://"+id) {
				return memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: uid, Container: s.Name}, true
			}
		}
		return memory.ContainerRef{}, false
	}
}

// podsByName returns a function that finds the node and UID of a pod in the cache.
func podsByName(reader client.Reader) metricsapi.Locate {
	return func(namespace, name string) (string, types.UID, bool) {
		var pod corev1.Pod
		if err := reader.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &pod); err != nil {
			return "", "", false
		}
		return pod.Spec.NodeName, pod.UID, pod.Spec.NodeName != ""
	}
}

// readHistory adds the reader of workloads' history before memfit to the manager; nil: no source.
func readHistory(mgr ctrl.Manager, feed *workloadctl.PodSource, o options) (*usagectl.HistoryBackfill, error) {
	if o.sources.prometheusURL == "" || o.sources.prometheusSpan == 0 {
		return nil, nil
	}
	source, pod := o.sources.prometheus, podsByName(mgr.GetClient())
	here := prometheus.Cluster{
		Pod: func(namespace, name string) (types.UID, bool) {
			_, uid, found := pod(namespace, name)
			return uid, found
		},
		Node: func(name string) bool {
			return !apierrors.IsNotFound(mgr.GetClient().Get(context.Background(), client.ObjectKey{Name: name}, &corev1.Node{}))
		},
	}
	history := &usagectl.HistoryBackfill{
		Name: source.Name(), Span: o.sources.prometheusSpan, Clock: clock.RealClock{}, Queue: feed,
		Read: func(ctx context.Context, w memory.WorkloadRef, from, to time.Time, take func(memory.Sample)) error {
			if err := source.CheckCluster(ctx, w, here); err != nil {
				return err
			}
			return source.History(ctx, w, prometheus.Span{From: from, To: to, Step: o.sources.prometheusStep}, take)
		},
	}
	if err := mgr.Add(history); err != nil {
		return nil, fmt.Errorf("adding the reader of history: %w", err)
	}
	return history, nil
}
