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

// certMode says who makes the webhook's certificate.
type certMode string

const (
	certManager certMode = "cert-manager"
	selfManaged certMode = "self-managed"
)

// options are the manager's flags.
type options struct {
	metricsAddr, probeAddr       string
	pprofAddr                    string
	metricsSecure                bool
	metricsCertPath              string
	webhookPort                  int
	webhookCertPath              string
	clientCA, clientNames        string
	webhooks                     bool
	configMapKeys                bool
	certMode                     certMode
	leaderElect                  bool
	usageInterval                time.Duration
	checkpointInterval           time.Duration
	changeBudgetBytes            string
	changeBudgetPods             int
	changeBudget                 rollout.ChangeBudget
	kubeletCAFile                string
	kubeletInsecure              bool
	usageAccount                 string
	namespace                    string
	excludeNamespaces            string
	serviceName, secretName      string
	mutatingName, validatingName string
	compressEvidence             int
	sources                      sources
	log                          zap.Options
}

// parse reads flags, and from the environment ENABLE_WEBHOOKS (kubebuilder's convention for running outside a cluster),
// POD_NAMESPACE, and READ_CONFIGMAP_KEYS, CLIENT_CA, CLIENT_NAMES and LAB_COMPRESS_EVIDENCE, which kustomize components
// can set without repeating all flags.
func parse(args []string, env func(string) string) (options, error) {
	o := options{namespace: env("POD_NAMESPACE"), webhooks: env("ENABLE_WEBHOOKS") != "false"}
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	if err := errors.Join(o.bind(f, env), f.Parse(args)); err != nil {
		return o, err
	}
	o.shortenIntervals(f)
	return o, o.validate()
}

// bind defines the flags. What env has for them is their default.
func (o *options) bind(f *flag.FlagSet, env func(string) string) error {
	f.StringVar(&o.metricsAddr, "metrics-bind-address", ":8443", "address of the metrics endpoint; 0 turns it off")
	f.BoolVar(
		&o.metricsSecure, "metrics-secure", true, "serve metrics over HTTPS, to callers the API server lets read /metrics",
	)
	f.StringVar(
		&o.metricsCertPath, "metrics-cert-path", "",
		"directory with tls.crt and tls.key for metrics; empty: a certificate made in memory, which no scraper can verify",
	)
	f.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.StringVar(
		&o.pprofAddr, "pprof-bind-address", "0",
		"address of /debug/pprof/, which asks nobody who they are: name a loopback address and use kubectl port-forward; "+
			"0 turns it off",
	)
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhook server")
	f.StringVar(
		&o.webhookCertPath, "webhook-cert-path", "/tmp/k8s-webhook-server/serving-certs",
		"directory with tls.crt and tls.key of the webhook; followed when renewed",
	)
	f.StringVar(
		&o.clientCA, "client-ca", env("CLIENT_CA"),
		"PEM file with the authorities of the API server's client certificate, which is then required on the webhook's "+
			"port; followed when renewed; empty: everybody who reaches the port is served",
	)
	f.StringVar(
		&o.clientNames, "client-names", env("CLIENT_NAMES"),
		"common names of client certificates that are served, separated by commas; empty: every one that --client-ca has "+
			"signed",
	)
	f.StringVar(
		(*string)(&o.certMode), "cert-mode", string(certManager),
		"who makes the webhook's certificate: cert-manager (or anybody who fills the directory) or self-managed",
	)
	f.StringVar(
		&o.secretName, "cert-secret", "webhook-server-cert",
		"self-managed: the Secret of memfit's own namespace that holds the certificate",
	)
	f.StringVar(
		&o.serviceName, "webhook-service", "memfit-webhook-service", "self-managed: the Service that the certificate is for",
	)
	f.StringVar(
		&o.mutatingName, "mutating-webhook", "memfit-mutating-webhook-configuration",
		"self-managed: the configuration that gets the CA",
	)
	f.StringVar(
		&o.validatingName, "validating-webhook", "memfit-validating-webhook-configuration",
		"self-managed: the configuration that gets the CA",
	)
	f.BoolVar(
		&o.configMapKeys, "read-configmap-keys", env("READ_CONFIGMAP_KEYS") == "true",
		"read which keys ConfigMaps have, so that envFrom holds back only the settings it names; needs the right of "+
			"config/rbac/read-configmap-keys",
	)
	f.BoolVar(
		&o.leaderElect, "leader-elect", true,
		"let one of several replicas run the controllers; all of them serve the webhook; outside of a cluster, the lease "+
			"is in the namespace of POD_NAMESPACE; off: at most one replica may run",
	)
	f.DurationVar(
		&o.usageInterval, "usage-interval", 15*time.Second,
		"time between two readings of the memory of governed containers; 0 turns them off",
	)
	f.DurationVar(
		&o.checkpointInterval, "checkpoint-interval", workloadctl.DefaultCheckpointEvery,
		"how much history a crash may lose; kills are never lost",
	)
	f.StringVar(
		&o.changeBudgetBytes, "change-budget-bytes", "0",
		"by how much sizes of running pods may be raised within an hour, in all workloads together, for example 16Gi; 0: no "+
			"bound",
	)
	f.IntVar(
		&o.changeBudgetPods, "change-budget-pods", 0,
		"how many running pods may be evicted, or restarted for a resize, within an hour, in all workloads together; 0: no "+
			"bound",
	)
	f.StringVar(
		&o.kubeletCAFile, "kubelet-ca-file", "",
		"PEM file with the authorities that sign kubelet serving certificates; empty: the cluster's CA",
	)
	f.BoolVar(
		&o.kubeletInsecure, "kubelet-insecure-skip-verify", false,
		"INSECURE: do not verify kubelets; memfit's token goes to whoever answers on a node's address",
	)
	f.StringVar(&o.usageAccount, "usage-service-account", defaultUsageAccount,
		"ServiceAccount of memfit's own namespace whose token kubelets see; empty: memfit shows them its own, which may do "+
			"much more")
	o.sources.bind(f)
	f.StringVar(
		&o.excludeNamespaces, "exclude-namespaces", defaultExcluded,
		"namespaces out of memfit's reach, besides its own, separated by commas; the webhook configuration excludes the same",
	)
	o.log.BindFlags(f)
	return o.bindLab(f, env)
}

// defaultExcluded is what config/webhook excludes: what a cluster needs to recover, and what memfit needs to start.
const defaultExcluded = "kube-system,kube-node-lease,cert-manager"

// excluded are the namespaces memfit keeps away from.
func (o *options) excluded() []string {
	return append(listed(o.excludeNamespaces), o.namespace)
}

// clients are the names of client certificates that are served.
func (o *options) clients() []string { return listed(o.clientNames) }

func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func (o *options) validate() error {
	var errs []error
	if o.clientNames != "" && o.clientCA == "" {
		errs = append(errs, errors.New("--client-names needs --client-ca: without it nobody shows a certificate"))
	}
	if o.certMode != certManager && o.certMode != selfManaged {
		errs = append(errs, fmt.Errorf("--cert-mode=%s: say cert-manager or self-managed", o.certMode))
	}
	if o.certMode == selfManaged && o.namespace == "" {
		errs = append(
			errs,
			errors.New(
				"--cert-mode=self-managed needs POD_NAMESPACE in the environment: the Secret lives in memfit's own namespace",
			),
		)
	}
	if o.usageInterval != 0 && o.usageInterval < time.Second {
		errs = append(
			errs,
			fmt.Errorf(
				"--usage-interval=%s: the kubelet measures every 10s or so; say at least 1s, or 0 to turn usage off",
				o.usageInterval,
			),
		)
	}
	if o.checkpointInterval < time.Second {
		errs = append(
			errs,
			fmt.Errorf(
				"--checkpoint-interval=%s: say at least 1s; every workload is written once per interval", o.checkpointInterval,
			),
		)
	}
	errs = append(errs, o.readChangeBudget(), o.validateLab())
	return errors.Join(append(errs, o.sources.validate()...)...)
}

// readChangeBudget makes a budget of its flags.
func (o *options) readChangeBudget() error {
	var errs []error
	q, err := memory.ParseQuantity(o.changeBudgetBytes)
	o.changeBudget.Bytes = memory.FromQuantity(q)
	if b := o.changeBudget.Bytes; err != nil || q.Sign() != 0 && b < memory.MiB {
		errs = append(errs, fmt.Errorf(
			"--change-budget-bytes=%s: say an amount of at least 1Mi, for example 16Gi, or 0 for no bound", o.changeBudgetBytes,
		))
	}
	if o.changeBudgetPods < 0 || o.changeBudgetPods > math.MaxInt32 {
		errs = append(errs, fmt.Errorf(
			"--change-budget-pods=%d: say how many pods, for example 20, or 0 for no bound", o.changeBudgetPods,
		))
		return errors.Join(errs...)
	}
	o.changeBudget.Pods = int32(o.changeBudgetPods)
	return errors.Join(errs...)
}
