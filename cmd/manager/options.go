// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
)

// certMode is the issuer of the webhook's certificate.
type certMode string

const (
	certManager certMode = "cert-manager"
	selfManaged certMode = "self-managed"
)

// options are the manager's flags.
type options struct {
	metricsAddr, probeAddr, pprofAddr                     string
	metricsCertPath, webhookCertPath                      string
	clientCA, clientNames, kubeletCAFile                  string
	usageAccount, namespace, excludeNamespaces            string
	secretName, serviceName, mutatingName, validatingName string
	metricsSecure, kubeletInsecure                        bool
	webhooks, configMapKeys, leaderElect, learnPriors     bool
	webhookPort, changeBudgetPods, compressEvidence       int
	usageInterval, checkpointInterval                     time.Duration
	certMode                                              certMode
	changeBudgetBytes                                     string
	changeBudget                                          rollout.ChangeBudget // from its two flags
	sources                                               sources
	log                                                   zap.Options
}

// parse reads flags and environment variables: ENABLE_WEBHOOKS (kubebuilder's convention for running outside a
// cluster), POD_NAMESPACE, and the defaults of flags that kustomize components set without repeating all flags:
// READ_CONFIGMAP_KEYS, CLIENT_CA, CLIENT_NAMES and LAB_COMPRESS_EVIDENCE.
func parse(args []string, env func(string) string) (options, error) {
	o := options{namespace: env("POD_NAMESPACE"), webhooks: env("ENABLE_WEBHOOKS") != "false"}
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	if err := errors.Join(o.bind(f, env), f.Parse(args)); err != nil {
		return o, err
	}
	o.shortenIntervals(f)
	err := o.validate()
	return o, err
}

// bind defines the flags, with their defaults from env.
func (o *options) bind(f *flag.FlagSet, env func(string) string) error {
	f.StringVar(&o.metricsAddr, "metrics-bind-address", ":8443", "address of the metrics endpoint; 0 disables it")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"serve metrics over HTTPS, to callers that RBAC allows to get /metrics")
	f.StringVar(&o.metricsCertPath, "metrics-cert-path", "",
		"directory with tls.crt and tls.key for metrics; empty: a self-signed certificate, which scrapers cannot verify")
	f.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.StringVar(&o.pprofAddr, "pprof-bind-address", "0",
		"address of /debug/pprof/, which is unauthenticated: use a loopback address and kubectl port-forward; 0 disables it")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhook server")
	f.StringVar(&o.webhookCertPath, "webhook-cert-path", "/tmp/k8s-webhook-server/serving-certs",
		"directory with tls.crt and tls.key of the webhook; reloaded when renewed")
	f.StringVar(&o.clientCA, "client-ca", env("CLIENT_CA"),
		"PEM file with the authorities of the API server's client certificate, which is then required on the webhook's "+
			"port; reloaded when renewed; empty: every client is served")
	f.StringVar(&o.clientNames, "client-names", env("CLIENT_NAMES"),
		"common names of client certificates that are served, separated by commas; empty: every certificate that "+
			"--client-ca has signed")
	f.StringVar((*string)(&o.certMode), "cert-mode", string(certManager),
		"issuer of the webhook's certificate: cert-manager (or any other writer of --webhook-cert-path) or self-managed")
	f.StringVar(&o.secretName, "cert-secret", "webhook-server-cert",
		"self-managed: the Secret in memfit's namespace that holds the certificate")
	f.StringVar(&o.serviceName, "webhook-service", "memfit-webhook-service",
		"self-managed: the Service that the certificate is for")
	f.StringVar(&o.mutatingName, "mutating-webhook", "memfit-mutating-webhook-configuration",
		"self-managed: the configuration that gets the CA")
	f.StringVar(&o.validatingName, "validating-webhook", "memfit-validating-webhook-configuration",
		"self-managed: the configuration that gets the CA")
	f.BoolVar(&o.configMapKeys, "read-configmap-keys", env("READ_CONFIGMAP_KEYS") == "true",
		"read the keys of ConfigMaps, so that envFrom prevents only settings whose variables it sets; needs the RBAC of "+
			"config/rbac/read-configmap-keys")
	f.BoolVar(&o.leaderElect, "leader-elect", true,
		"run the controllers on one elected replica; all replicas serve the webhook; outside of a cluster, the lease is in "+
			"the namespace POD_NAMESPACE; false: run at most one replica")
	f.DurationVar(&o.usageInterval, "usage-interval", 15*time.Second,
		"interval between two readings of the memory of governed containers; 0 disables them")
	f.DurationVar(&o.checkpointInterval, "checkpoint-interval", workloadctl.DefaultCheckpointEvery,
		"interval between two writes of a workload's history, and the most that a crash loses; OOM kills are written "+
			"immediately")
	f.BoolVar(&o.learnPriors, "learn-priors", true,
		"size young containers for the bursts of older ones with the same image, command and arguments, which memfit "+
			"records in the MemoryCheckpoint memfit-priors in its namespace")
	f.StringVar(&o.changeBudgetBytes, "change-budget-bytes", "0",
		"largest total increase of running pods' sizes within an hour, over all workloads, for example 16Gi; 0: no limit")
	f.IntVar(&o.changeBudgetPods, "change-budget-pods", 0,
		"largest number of running pods that memfit evicts, or restarts for a resize, within an hour, over all workloads; "+
			"0: no limit")
	f.StringVar(&o.kubeletCAFile, "kubelet-ca-file", "",
		"PEM file with the authorities that sign kubelet serving certificates; empty: the cluster's CA")
	f.BoolVar(&o.kubeletInsecure, "kubelet-insecure-skip-verify", false,
		"INSECURE: do not verify kubelets; memfit sends its token to any server at a node's address")
	f.StringVar(&o.usageAccount, "usage-service-account", defaultUsageAccount,
		"ServiceAccount in memfit's namespace whose token is sent to kubelets; empty: memfit sends its own, which has more "+
			"rights")
	o.sources.bind(f)
	f.StringVar(&o.excludeNamespaces, "exclude-namespaces", defaultExcluded,
		"namespaces that memfit ignores besides its own, separated by commas; the webhook configuration must exclude them")
	o.log.BindFlags(f)
	return o.bindLab(f, env)
}

// defaultExcluded are the namespaces that config/webhook excludes: clusters need them to recover, memfit to start.
const defaultExcluded = "kube-system,kube-node-lease,cert-manager"

// excluded returns the namespaces that memfit ignores.
func (o *options) excluded() []string { return append(listed(o.excludeNamespaces), o.namespace) }

func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func (o *options) validate() error {
	var errs refusals
	errs.when(o.clientNames != "" && o.clientCA == "",
		"--client-names needs --client-ca: without it no client presents a certificate")
	errs.when(o.certMode != certManager && o.certMode != selfManaged,
		"--cert-mode=%s: must be cert-manager or self-managed", o.certMode)
	errs.when(o.certMode == selfManaged && o.namespace == "",
		"--cert-mode=self-managed needs POD_NAMESPACE in the environment: the Secret lives in memfit's own namespace")
	errs.when(o.usageInterval != 0 && o.usageInterval < time.Second,
		"--usage-interval=%s: must be at least 1s, or 0 to read no usage; the kubelet measures every 10s or so",
		o.usageInterval)
	errs.when(o.checkpointInterval < time.Second,
		"--checkpoint-interval=%s: must be at least 1s; every workload is written once per interval", o.checkpointInterval)
	return errors.Join(errors.Join(errs...), o.readChangeBudget(), o.validateLab(), o.sources.validate())
}

// refusals are the errors of invalid flags.
type refusals []error

func (r *refusals) when(wrong bool, format string, args ...any) {
	if wrong {
		*r = append(*r, fmt.Errorf(format, args...))
	}
}

// readChangeBudget sets changeBudget from its two flags.
func (o *options) readChangeBudget() error {
	var errs refusals
	q, err := memory.ParseQuantity(o.changeBudgetBytes)
	o.changeBudget = rollout.ChangeBudget{
		Bytes: memory.FromQuantity(q), Pods: int32(min(max(o.changeBudgetPods, 0), math.MaxInt32)),
	}
	errs.when(err != nil || q.Sign() != 0 && o.changeBudget.Bytes < memory.MiB,
		"--change-budget-bytes=%s: must be at least 1Mi, for example 16Gi, or 0 for no bound", o.changeBudgetBytes)
	errs.when(int(o.changeBudget.Pods) != o.changeBudgetPods,
		"--change-budget-pods=%d: must be a number of pods, for example 20, or 0 for no bound", o.changeBudgetPods)
	return errors.Join(errs...)
}
