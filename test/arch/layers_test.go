// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import "slices"

const module = "github.com/memfit/memfit"

// layer is one entry of the table of layers. A path that ends in "/..." matches the path and all packages below it.
type layer struct {
	name    string
	dir     string   // its packages
	ours    []string // memfit packages that it may import, relative to the module
	outside []string // third-party packages that it may import
	noStd   []string // standard packages that it may not import, nor any package below them
	never   []string // third-party packages that it may not import indirectly either
}

// layers is the table. A package belongs to the first layer that matches it. TestImports fails for a package that
// matches none: before you add a package, add a layer with its allowed imports.
var layers = []layer{
	{
		name: "api", dir: "api/...", noStd: pure,
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/api/resource",
			"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/types",
			"k8s.io/apimachinery/pkg/util/intstr",
		},
		never: clients,
	},
	{
		name: "crd", dir: "config/crd", noStd: pure, // the generated definitions, embedded
		never: slices.Concat(clients, kinds),
	},
	{
		name: "memory", dir: "internal/memory/...", noStd: pure,
		outside: []string{"k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/types"},
		never:   slices.Concat(clients, kinds),
	},
	{
		name: "quote", dir: "internal/quote/...", noStd: pure, // quotes text of other programs
		never: slices.Concat(clients, kinds),
	},
	{
		name: "codec", dir: "internal/codec/...", noStd: pure, // packs numbers
		never: slices.Concat(clients, kinds),
	},
	{
		name: "period", dir: "internal/period/...", noStd: pure, // periods of evidence, which a lab compresses
		never: slices.Concat(clients, kinds),
	},
	{
		name: "profile", dir: "internal/profile/...", noStd: pure,
		ours: []string{
			"api/v1alpha1", "internal/format", "internal/maintenance", "internal/memory", "internal/period", "internal/quote",
			"internal/recommend", "internal/runtimes",
		},
		outside: slices.Concat(pods, []string{
			"k8s.io/apimachinery/pkg/apis/meta/v1/validation", "k8s.io/apimachinery/pkg/labels",
			"k8s.io/apimachinery/pkg/util/intstr", "k8s.io/apimachinery/pkg/util/validation/field",
		}),
		never: clients,
	},
	{
		name: "runtimes", dir: "internal/runtimes/...", noStd: pure,
		ours:  []string{"internal/attribution/amounts", "internal/memory"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "inject", dir: "internal/inject/...", noStd: pure,
		ours: []string{
			"api/v1alpha1", "internal/memory", "internal/constraints", "internal/profile", "internal/recommend",
			"internal/runtimes",
		},
		outside: pods,
		never:   clients,
	},
	{
		name: "boundedjson", dir: "internal/boundedjson/...", noStd: pure, // reads untrusted JSON
		ours:    []string{"internal/memory"},
		outside: slices.Concat(pods, []string{"github.com/go-json-experiment/json/..."}),
		never:   clients,
	},
	{
		name: "stats", dir: "internal/stats/...", noStd: pure, // plain numbers in, plain numbers out
		never: slices.Concat(clients, kinds),
	},
	{
		name: "shape", dir: "internal/shape/...", noStd: pure, // classifies memory use over time
		ours:  []string{"internal/format", "internal/history", "internal/memory", "internal/period", "internal/stats"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "oom", dir: "internal/oom/...", noStd: pure, // OOM kills and stalls, each counted once
		ours: []string{
			"internal/codec", "internal/constraints", "internal/format", "internal/memory", "internal/period",
			"internal/quote", "internal/runtimes",
		},
		outside: pods,
		never:   clients,
	},
	{
		name: "drift", dir: "internal/drift/...", noStd: pure, // finds pods to replace before an OOM kill
		ours: []string{
			"internal/format", "internal/memory", "internal/period", "internal/rollout", "internal/shape",
		},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		name: "rollout", dir: "internal/rollout/...", noStd: pure, // decides the next resize or eviction
		ours: []string{
			"api/v1alpha1", "internal/constraints", "internal/format", "internal/maintenance", "internal/memory",
			"internal/period", "internal/quote", "internal/recommend", "internal/rescue",
		},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		name: "maintenance", dir: "internal/maintenance/...", noStd: pure, // when maintenance windows are open
		outside: []string{"github.com/robfig/cron/v3"}, // the parser of CronJob schedules
		never:   slices.Concat(clients, kinds),
	},
	{
		name: "history", dir: "internal/history/...", noStd: pure, // a container's usage in bounded bytes
		ours:  []string{"internal/codec", "internal/memory", "internal/period"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "recommend", dir: "internal/recommend/...", noStd: pure, // computes sizes from evidence
		ours:  []string{"internal/format", "internal/history", "internal/memory", "internal/period"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "constraints", dir: "internal/constraints/...", noStd: pure, // its arguments are objects of other projects
		ours: []string{"internal/memory", "internal/workloadkind"},
		outside: []string{
			"k8s.io/api/autoscaling/v2", "k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1",
			"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
		},
		never: clients,
	},
	{
		name: "usage", dir: "internal/usage", noStd: ownsNoProcess,
		ours:  []string{"internal/cgroup", "internal/format", "internal/memory", "internal/quote"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "usage-sources", dir: "internal/usage/...", noStd: ownsNoProcess,
		ours: []string{"internal/memory", "internal/usage", "internal/workloadkind"},
		outside: []string{
			"github.com/go-json-experiment/json/...",
			"github.com/prometheus/client_golang/api/...", "github.com/prometheus/client_model/...",
			"github.com/prometheus/common/...",
			"k8s.io/apimachinery/pkg/types", "k8s.io/client-go/rest", "k8s.io/kubelet/pkg/apis/stats/v1alpha1",
			"k8s.io/metrics/...",
		},
		never: []string{"sigs.k8s.io/controller-runtime/..."},
	},
	{
		name: "procmem", dir: "internal/procmem", noStd: pure, // reads an fs.FS that the caller opened
		ours:  []string{"internal/memory"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "elffile", dir: "internal/procmem/elffile", noStd: pure, // reads untrusted programs
		never: slices.Concat(clients, kinds),
	},
	{
		name: "perfdata", dir: "internal/procmem/perfdata", noStd: pure, // reads performance counters of JVMs
		ours:  []string{"internal/procmem"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "procmem-live", dir: "internal/procmem/live", // reads running processes by system calls
		ours:    []string{"internal/procmem"},
		outside: []string{"golang.org/x/sys/unix"},
		never:   slices.Concat(clients, kinds),
	},
	{
		// Attributes the memory of a process. It may import context, which ends long reads.
		name: "attribution", dir: "internal/attribution/...", noStd: []string{"os", "net", "log"},
		ours: []string{
			"internal/attribution/...", "internal/memory", "internal/procmem", "internal/procmem/elffile",
			"internal/procmem/perfdata",
		},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "levers", dir: "internal/levers", noStd: pure, // ways to reduce a container's memory, with amounts
		ours:  []string{"internal/attribution/amounts", "internal/memory", "internal/runtimes"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "suggest", dir: "internal/suggest", noStd: pure, // suggests the runtime of a container
		ours:  []string{"internal/quote", "internal/runtimes"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "pagemap", dir: "internal/pagemap", noStd: pure, // pages in use, free and absent, in bounded bytes
		ours:  []string{"internal/memory"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "workloadkind", dir: "internal/workloadkind/...", noStd: pure, // the table of workload kinds
		never: slices.Concat(clients, kinds),
	},
	{
		name: "identity", dir: "internal/identity/...", noStd: pure, // groups pods that have different owners
		ours: []string{"internal/memory", "internal/workloadkind"},
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/labels",
			"k8s.io/apimachinery/pkg/selection", "k8s.io/apimachinery/pkg/types",
		},
		never: clients,
	},
	{
		name: "owners", dir: "internal/owners/...", noStd: ownsNoProcess, // reads informer caches
		ours:    []string{"internal/memory", "internal/workloadkind"},
		outside: append(slices.Clone(cached), "k8s.io/utils/lru"),
	},
	{
		name: "constraintindex", dir: "internal/constraintindex/...", noStd: ownsNoProcess, // watches informer caches
		ours:    []string{"internal/memory", "internal/constraints", "internal/informers"},
		outside: cached,
	},
	{
		name: "policy", dir: "internal/policy/...", noStd: ownsNoProcess, // reads informer caches
		ours: []string{
			"api/v1alpha1", "internal/identity", "internal/memory", "internal/owners", "internal/profile",
			"internal/workloadkind",
		},
		outside: cached,
	},
	{
		name: "records", dir: "internal/records/...", noStd: pure, // the owner of a stored record
		ours:    []string{"internal/memory", "internal/workloadkind"},
		outside: []string{"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		name: "format", dir: "internal/format/...", noStd: pure, // amounts, durations and counts in messages
		ours:    []string{"internal/memory"},
		outside: []string{"k8s.io/apimachinery/pkg/api/resource"},
		never:   slices.Concat(clients, kinds),
	},
	{
		name: "report", dir: "internal/report/...", noStd: pure, // sentences for users
		ours:  []string{"internal/format", "internal/memory", "internal/runtimes"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "conditions", dir: "internal/conditions/...", noStd: pure,
		ours:    []string{"internal/quote"},
		outside: []string{"k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1"},
		never:   slices.Concat(clients, kinds),
	},
	{
		name: "workload", dir: "internal/workload/...", noStd: pure, // decides about one workload
		ours: []string{
			"api/v1alpha1", "internal/rollout", "internal/conditions", "internal/drift", "internal/format", "internal/history",
			"internal/identity", "internal/inject", "internal/levers",
			"internal/memory", "internal/constraints", "internal/period", "internal/profile", "internal/quote",
			"internal/recommend", "internal/report", "internal/rescue", "internal/runtimes", "internal/records", "internal/oom",
			"internal/shape", "internal/workloadkind",
		},
		outside: slices.Concat(pods, []string{
			"k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/runtime",
		}),
		never: clients,
	},
	{
		name: "profilestatus", dir: "internal/profilestatus/...", noStd: pure, // computes the status of a profile
		ours: []string{
			"api/v1alpha1", "internal/conditions", "internal/format", "internal/identity", "internal/memory",
			"internal/profile", "internal/workload",
		},
		outside: []string{"k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1"},
		never:   clients,
	},
	{
		name: "inbox", dir: "internal/inbox/...", noStd: ownsNoProcess, // keeps events of workloads under a lock
		ours: []string{
			"internal/memory", "internal/oom", "internal/policy", "internal/profile", "internal/workload",
			"internal/workloadkind",
		},
		outside: []string{"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/types"},
	},
	{
		name: "informers", dir: "internal/informers/...", noStd: ownsNoProcess, // configures caches
		ours: []string{
			"api/v1alpha1", "internal/constraints", "internal/identity", "internal/policy", "internal/memory",
			"internal/owners",
		},
		outside: cached,
	},
	{
		name: "liveness", dir: "internal/liveness/...", noStd: ownsNoProcess,
		ours:    []string{"internal/format"},
		outside: []string{"k8s.io/utils/clock"},
		never:   slices.Concat(clients, kinds),
	},
	{
		name: "controllers-workload", dir: "controllers/workload", noStd: ownsNoProcess,
		ours: []string{
			"api/v1alpha1", "controllers/sweeper", "internal/rollout", "internal/conditions",
			"internal/format", "internal/policy", "internal/history", "internal/identity", "internal/inbox",
			"internal/informers", "internal/liveness", "internal/memory", "internal/constraints", "internal/owners",
			"internal/profile", "internal/quote",
			"internal/recommend", "internal/records", "internal/rescue", "internal/oom", "internal/shape", "internal/workload",
		},
		// metrics.go implements prometheus.Metric, which writes client_model types.
		outside: slices.Concat(edge, []string{"github.com/prometheus/client_model/...", "golang.org/x/time/rate"}),
	},
	{
		name: "controllers-usage", dir: "controllers/usage", noStd: ownsNoProcess,
		ours: []string{
			"internal/history", "internal/inbox", "internal/memory", "internal/usage",
		},
		outside: edge,
	},
	{
		name: "controllers-constraints", dir: "controllers/constraints", noStd: ownsNoProcess,
		ours: []string{
			"internal/constraintindex", "internal/informers", "internal/memory", "internal/constraints", "internal/owners",
		},
		outside: edge,
	},
	{
		name: "controllers-snapshots", dir: "controllers/snapshots", noStd: ownsNoProcess,
		ours:    []string{"api/v1alpha1", "internal/informers", "internal/memory"},
		outside: edge,
	},
	{
		name: "controllers-rescue", dir: "controllers/rescue", noStd: ownsNoProcess, // handles alarms outside the queue
		ours: []string{
			"api/v1alpha1", "controllers/workload", "internal/constraints", "internal/inbox", "internal/memory",
			"internal/policy", "internal/rescue", "internal/rollout", "internal/workload",
		},
		outside: edge,
	},
	{
		name: "controllers-profile", dir: "controllers/profile", noStd: ownsNoProcess,
		ours: []string{
			"api/v1alpha1", "internal/conditions", "internal/policy", "internal/liveness", "internal/memory",
			"internal/profile", "internal/profilestatus",
		},
		outside: edge,
	},
	{
		name: "controllers-sweeper", dir: "controllers/sweeper", noStd: ownsNoProcess,
		ours: []string{
			"api/v1alpha1", "internal/identity", "internal/policy", "internal/memory", "internal/owners", "internal/records",
			"internal/workloadkind",
		},
		outside: edge,
	},
	{
		name: "webhooks-server", dir: "webhooks/server", // bounds the port's connections; reads the client CA file
		outside: append(slices.Clone(edge), "golang.org/x/sync/semaphore", "golang.org/x/time/rate"),
	},
	{
		name: "webhooks-pod", dir: "webhooks/pod", noStd: ownsNoProcess,
		ours: []string{
			"api/v1alpha1", "internal/boundedjson", "internal/constraintindex", "internal/policy", "internal/identity",
			"internal/format", "internal/informers", "internal/inject", "internal/memory", "internal/oom",
			"internal/recommend", "internal/constraints", "internal/profile", "internal/records", "internal/workloadkind",
		},
		outside: append(slices.Clone(edge), "github.com/go-json-experiment/json/jsontext"),
	},
	{
		name: "webhooks-profile", dir: "webhooks/profile", noStd: ownsNoProcess,
		ours:    []string{"api/v1alpha1", "internal/boundedjson", "internal/memory", "internal/profile"},
		outside: edge,
	},
	{
		name: "webhooks", dir: "webhooks", noStd: pure, // tests of the webhooks with an API server
	},
	{
		name: "detect", dir: "internal/detect/...", noStd: pure, // detects the runtime of a process; opens no files
		ours: []string{
			"internal/procmem", "internal/procmem/elffile", "internal/procmem/perfdata", "internal/quote", "internal/runtimes",
		},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "manager", dir: "cmd/manager/...", // not procmem, which belongs to the agent
		ours: []string{
			"api/v1alpha1", "controllers/...", "internal/constraintindex", "internal/policy", "internal/history",
			"internal/inbox",
			"internal/informers", "internal/inject",
			"internal/liveness", "internal/memory", "internal/owners", "internal/period", "internal/profile",
			"internal/recommend", "internal/rollout", "internal/runtimes", "internal/oom",
			"internal/usage/...", "webhooks/pod/...", "webhooks/profile", "webhooks/server",
		},
		outside: slices.Concat(
			edge, []string{
				"github.com/open-policy-agent/cert-controller/...", "golang.org/x/crypto/x509roots/fallback", "golang.org/x/oauth2",
			},
		),
	},
	{
		name: "cgroup", dir: "internal/cgroup/...", noStd: pure, // reads an fs.FS that the caller opened
		ours:  []string{"internal/memory"},
		never: slices.Concat(clients, kinds),
	},
	{
		// Records the last minute of a container, and decides when to read and when to write.
		name: "flightrecorder", dir: "internal/flightrecorder/...", noStd: pure,
		ours:    []string{"internal/cgroup", "internal/format", "internal/memory"},
		outside: []string{"golang.org/x/time/rate"}, // token buckets that take the time as an argument
		never:   slices.Concat(clients, kinds),
	},
	{
		// Decides, for the agent and for the manager, whether to lend memory to a container near its limit.
		name: "rescue", dir: "internal/rescue/...", noStd: pure,
		ours:    []string{"api/v1alpha1", "internal/format", "internal/memory"},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		// The agent runs on every node, so its binary is small: of client-go it imports the REST client and tools/cache
		// (1.3 MB), but neither informers nor the typed clients of all kinds.
		name: "agent", dir: "cmd/agent/...",
		ours: []string{
			"api/v1alpha1", "cmd/agent/internal/...", "internal/attribution/...", "internal/cgroup", "internal/detect",
			"internal/flightrecorder",
			"internal/format", "internal/levers", "internal/liveness", "internal/memory", "internal/pagemap",
			"internal/procmem/...", "internal/quote", "internal/rescue", "internal/runtimes",
		},
		outside: []string{
			"github.com/fsnotify/fsnotify", // watches for new cgroups
			"golang.org/x/sys/unix",        // the CPU time of a thread
			"golang.org/x/time/rate",       // token buckets that take the time as an argument
			"github.com/prometheus/client_golang/...", "k8s.io/api/core/v1", "k8s.io/apimachinery/...",
			"k8s.io/client-go/rest", "k8s.io/client-go/tools/cache", "k8s.io/klog/v2", "k8s.io/utils/clock",
		},
		never: []string{
			"sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/informers/...", "k8s.io/client-go/kubernetes/...",
		},
	},
	{
		name: "kubectl-listing", dir: "cmd/kubectl-memfit/internal/listing", noStd: pure, // lists in kubectl get's format
		ours: []string{"internal/quote"},
		outside: []string{
			"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "k8s.io/apimachinery/pkg/util/json",
			"k8s.io/cli-runtime/pkg/printers",
		},
	},
	{
		name: "kubectl-report", dir: "cmd/kubectl-memfit/internal/report", noStd: pure, // recommendations as text
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/listing", "internal/format", "internal/identity", "internal/levers",
			"internal/memory", "internal/profile", "internal/quote", "internal/runtimes", "internal/workloadkind",
		},
		outside: []string{
			"k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
		},
	},
	{
		name: "kubectl-inventory", dir: "cmd/kubectl-memfit/internal/inventory", noStd: pure, // lists a cluster's workloads
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/listing", "cmd/kubectl-memfit/internal/report",
			"internal/constraints", "internal/format", "internal/identity", "internal/inject", "internal/memory",
			"internal/profile", "internal/quote", "internal/runtimes", "internal/suggest", "internal/workload",
			"internal/workloadkind",
		},
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
			"k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/validation",
		},
	},
	{
		name: "kubectl-picture", dir: "cmd/kubectl-memfit/internal/picture", noStd: pure, // draws the memory of a pod
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/listing", "cmd/kubectl-memfit/internal/report", "internal/format",
			"internal/memory", "internal/pagemap", "internal/quote",
		},
	},
	{
		name: "kubectl-htmlreport", dir: "cmd/kubectl-memfit/internal/htmlreport", noStd: pure, // recommendations as HTML
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/inventory", "cmd/kubectl-memfit/internal/report", "internal/format",
			"internal/history", "internal/memory",
		},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
	},
	{
		name: "kubectl-export", dir: "cmd/kubectl-memfit/internal/export", noStd: pure, // recommendations as patches
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/report", "internal/format", "internal/identity", "internal/memory",
			"internal/quote", "internal/workloadkind",
		},
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/api/resource",
			"k8s.io/apimachinery/pkg/apis/meta/v1",
			"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "k8s.io/apimachinery/pkg/runtime", "sigs.k8s.io/yaml",
		},
	},
	{
		name: "preview", dir: "cmd/kubectl-memfit/internal/preview", // make demo's output while a node compiles
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/htmlreport", "cmd/kubectl-memfit/internal/offline",
			"cmd/kubectl-memfit/internal/report", "internal/history", "internal/memory", "internal/oom",
			"internal/profile", "internal/workload",
		},
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
			"k8s.io/apimachinery/pkg/types", "sigs.k8s.io/yaml",
		},
	},
	{
		name: "kubectl-memfit", dir: "cmd/kubectl-memfit/...",
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/...", "config/crd", "internal/constraints", "internal/format",
			"internal/history",
			"internal/identity", "internal/inject", "internal/levers",
			"internal/memory", "internal/pagemap", "internal/runtimes", "internal/suggest",
			"internal/profile", "internal/recommend", "internal/workload", "internal/workloadkind",
		},
		// yaml/v3 preserves the comments and the order of the manifests that it edits; difflib writes the output of -o diff;
		// sigs.k8s.io/json decodes as the API server does.
		outside: []string{
			"github.com/pmezard/go-difflib/difflib", "github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3",
			"k8s.io/...", "sigs.k8s.io/json", "sigs.k8s.io/yaml",
		},
		never: []string{"sigs.k8s.io/controller-runtime/..."},
	},
}

// free are the trees that may import anything. No layer lists them, so only they and test files can import them.
var free = []string{"test/...", "hack/..."}

var (
	// pure layers return equal output for equal input.
	pure = []string{"os", "net", "log", "context"}
	// ownsNoProcess layers leave files, flags, environment and exit codes to cmd.
	ownsNoProcess = []string{"os"}

	// pods are the imports of layers that read and edit pods.
	pods = []string{
		"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/types",
	}
	// cached are the imports of layers that read informer caches and do not write to the cluster.
	cached = []string{
		"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/tools/cache",
		"sigs.k8s.io/controller-runtime/pkg/cache", "sigs.k8s.io/controller-runtime/pkg/client",
		"sigs.k8s.io/controller-runtime/pkg/log",
	}
	// edge are the imports of layers that call the Kubernetes API.
	edge = []string{
		"github.com/go-logr/logr/...", "github.com/prometheus/client_golang/...", "k8s.io/...", "sigs.k8s.io/...",
	}

	clients = []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}
	kinds   = []string{"k8s.io/api/..."}
)
