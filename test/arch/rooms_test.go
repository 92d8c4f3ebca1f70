// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import "slices"

const module = "github.com/memfit/memfit"

// room is one line of the table of rooms. Import paths ending in "/..." stand for the path and all below it.
type room struct {
	name    string
	dir     string   // "dir" is one package, "dir/..." the tree
	ours    []string // our packages it may import, relative to the module
	outside []string // third-party packages it may import
	noStd   []string // standard packages (and all below them) it may not import
	never   []string // third-party packages that may not even be linked in through others
}

// rooms is the table; the first room that matches a package is its own. A package that no line matches fails the test:
// before you add one, say in one line what it may touch.
var rooms = []room{
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
		name: "quote", dir: "internal/quote/...", noStd: pure, // repeats what somebody else wrote
		never: slices.Concat(clients, kinds),
	},
	{
		name: "codec", dir: "internal/codec/...", noStd: pure, // packs numbers
		never: slices.Concat(clients, kinds),
	},
	{
		name: "period", dir: "internal/period/...", noStd: pure, // periods of evidence, and how a lab shortens them
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
		name: "boundedjson", dir: "internal/boundedjson/...", noStd: pure, // reads JSON that anybody may send
		ours:    []string{"internal/memory"},
		outside: slices.Concat(pods, []string{"github.com/go-json-experiment/json/..."}),
		never:   clients,
	},
	{
		name: "stats", dir: "internal/stats/...", noStd: pure, // plain numbers in, plain numbers out
		never: slices.Concat(clients, kinds),
	},
	{
		name: "shape", dir: "internal/shape/...", noStd: pure, // what memory does over time
		ours:  []string{"internal/format", "internal/history", "internal/memory", "internal/period", "internal/stats"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "oom", dir: "internal/oom/...", noStd: pure, // the kills and stalls of a workload, each once
		ours: []string{
			"internal/codec", "internal/constraints", "internal/format", "internal/memory", "internal/period",
			"internal/quote", "internal/runtimes",
		},
		outside: pods,
		never:   clients,
	},
	{
		name: "drift", dir: "internal/drift/...", noStd: pure, // whether a pod should make room before it is killed
		ours: []string{
			"internal/format", "internal/memory", "internal/period", "internal/rollout", "internal/shape",
		},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		// what is done next to running pods that have another size than they should
		name: "rollout", dir: "internal/rollout/...", noStd: pure,
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
		name: "history", dir: "internal/history/...", noStd: pure, // remembers one container's usage in bounded bytes
		ours:  []string{"internal/codec", "internal/memory", "internal/period"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "recommend", dir: "internal/recommend/...", noStd: pure, // from evidence to a size
		ours:  []string{"internal/format", "internal/history", "internal/memory", "internal/period"},
		never: slices.Concat(clients, kinds),
	},
	{
		// reads other people's objects, which are arguments
		name: "constraints", dir: "internal/constraints/...", noStd: pure,
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
		name: "elffile", dir: "internal/procmem/elffile", noStd: pure, // reads programs that somebody else wrote
		never: slices.Concat(clients, kinds),
	},
	{
		name: "perfdata", dir: "internal/procmem/perfdata", noStd: pure, // reads counters that a JVM wrote
		ours:  []string{"internal/procmem"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "procmem-live", dir: "internal/procmem/live", // reads processes that run, by system calls
		ours:    []string{"internal/procmem"},
		outside: []string{"golang.org/x/sys/unix"},
		never:   slices.Concat(clients, kinds),
	},
	{
		// where the memory of a process is; long reads end with their context
		name: "attribution", dir: "internal/attribution/...", noStd: []string{"os", "net", "log"},
		ours: []string{
			"internal/attribution/...", "internal/memory", "internal/procmem", "internal/procmem/elffile",
			"internal/procmem/perfdata",
		},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "levers", dir: "internal/levers", noStd: pure, // what would give memory of a container back, and how much
		ours:  []string{"internal/attribution/amounts", "internal/memory", "internal/runtimes"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "suggest", dir: "internal/suggest", noStd: pure, // what a container probably runs, for people who decide
		ours:  []string{"internal/quote", "internal/runtimes"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "pagemap", dir: "internal/pagemap", noStd: pure, // which pages are in use, free and absent, in bounded bytes
		ours:  []string{"internal/memory"},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "workloadkind", dir: "internal/workloadkind/...", noStd: pure, // the table of kinds that have pods
		never: slices.Concat(clients, kinds),
	},
	{
		name: "identity", dir: "internal/identity/...", noStd: pure, // what identifies pods instead of their owner
		ours: []string{"internal/memory", "internal/workloadkind"},
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/labels",
			"k8s.io/apimachinery/pkg/selection", "k8s.io/apimachinery/pkg/types",
		},
		never: clients,
	},
	{
		name: "owners", dir: "internal/owners/...", noStd: ownsNoProcess, // reads caches, for the edges
		ours:    []string{"internal/memory", "internal/workloadkind"},
		outside: append(slices.Clone(cached), "k8s.io/utils/lru"),
	},
	{
		name: "constraintindex", dir: "internal/constraintindex/...", noStd: ownsNoProcess, // follows caches, for the edges
		ours:    []string{"internal/memory", "internal/constraints", "internal/informers"},
		outside: cached,
	},
	{
		name: "policy", dir: "internal/policy/...", noStd: ownsNoProcess, // reads caches, for the edges
		ours: []string{
			"api/v1alpha1", "internal/identity", "internal/memory", "internal/owners", "internal/profile",
			"internal/workloadkind",
		},
		outside: cached,
	},
	{
		name: "records", dir: "internal/records/...", noStd: pure, // whose a stored record is
		ours:    []string{"internal/memory", "internal/workloadkind"},
		outside: []string{"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		name: "format", dir: "internal/format/...", noStd: pure, // amounts, durations and counts as messages say them
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
		name: "profilestatus", dir: "internal/profilestatus/...", noStd: pure, // what the status of a profile tells
		ours: []string{
			"api/v1alpha1", "internal/conditions", "internal/format", "internal/identity", "internal/memory",
			"internal/profile", "internal/workload",
		},
		outside: []string{"k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1"},
		never:   clients,
	},
	{
		// what the informers write to; it keeps a lock, and reads no clock
		name: "inbox", dir: "internal/inbox/...", noStd: ownsNoProcess,
		ours: []string{
			"internal/memory", "internal/oom", "internal/policy", "internal/profile", "internal/workload",
			"internal/workloadkind",
		},
		outside: []string{"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/types"},
	},
	{
		name: "informers", dir: "internal/informers/...", noStd: ownsNoProcess, // what caches keep
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
		// series of gauges are made when they are asked for
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
		name: "controllers-rescue", dir: "controllers/rescue", noStd: ownsNoProcess, // alarms of agents, outside of the queue
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
		name: "webhooks-server", dir: "webhooks/server", // a port within bounds; reads the client CA from a file
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
		name: "webhooks", dir: "webhooks", noStd: pure, // only tests: of both webhooks before an API server
	},
	{
		name: "detect", dir: "internal/detect/...", noStd: pure, // what runs in a process; opens no file by itself
		ours: []string{
			"internal/procmem", "internal/procmem/elffile", "internal/procmem/perfdata", "internal/quote", "internal/runtimes",
		},
		never: slices.Concat(clients, kinds),
	},
	{
		name: "manager", dir: "cmd/manager/...", // all but procmem, which is the agent's
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
		// what the last minute of a container shows, and when to read and to write
		name: "flightrecorder", dir: "internal/flightrecorder/...", noStd: pure,
		ours:    []string{"internal/cgroup", "internal/format", "internal/memory"},
		outside: []string{"golang.org/x/time/rate"}, // token buckets that take the time as an argument
		never:   slices.Concat(clients, kinds),
	},
	{
		// whether a container that is about to reach its limit is lent memory: asked by the agent and by the manager
		name: "rescue", dir: "internal/rescue/...", noStd: pure,
		ours:    []string{"api/v1alpha1", "internal/format", "internal/memory"},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
		never:   clients,
	},
	{
		// Runs on every node, so it stays small: of client-go it has the client for one kind and the list-and-watch of
		// tools/cache (1.3 MB of program), and neither informers nor the clients of all kinds.
		name: "agent", dir: "cmd/agent/...",
		ours: []string{
			"api/v1alpha1", "cmd/agent/internal/...", "internal/attribution/...", "internal/cgroup", "internal/detect",
			"internal/flightrecorder",
			"internal/format", "internal/levers", "internal/liveness", "internal/memory", "internal/pagemap",
			"internal/procmem/...", "internal/quote", "internal/rescue", "internal/runtimes",
		},
		outside: []string{
			"github.com/fsnotify/fsnotify", // inotify: new cgroups at once
			"golang.org/x/sys/unix",        // the clock of a thread's processor time
			"golang.org/x/time/rate",       // token buckets that take the time as an argument
			"github.com/prometheus/client_golang/...", "k8s.io/api/core/v1", "k8s.io/apimachinery/...",
			"k8s.io/client-go/rest", "k8s.io/client-go/tools/cache", "k8s.io/klog/v2", "k8s.io/utils/clock",
		},
		never: []string{
			"sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/informers/...", "k8s.io/client-go/kubernetes/...",
		},
	},
	{
		name: "kubectl-listing", dir: "cmd/kubectl-memfit/internal/listing", noStd: pure, // lists as kubectl get prints them
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
		name: "kubectl-inventory", dir: "cmd/kubectl-memfit/internal/inventory", noStd: pure, // what runs in a cluster
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
		name: "kubectl-picture", dir: "cmd/kubectl-memfit/internal/picture", noStd: pure, // what fills a pod, as a drawing
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/listing", "cmd/kubectl-memfit/internal/report", "internal/format",
			"internal/memory", "internal/pagemap", "internal/quote",
		},
	},
	{
		name: "kubectl-htmlreport", dir: "cmd/kubectl-memfit/internal/htmlreport", noStd: pure, // recommendations as a page
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/inventory", "cmd/kubectl-memfit/internal/report", "internal/format",
			"internal/history", "internal/memory",
		},
		outside: []string{"k8s.io/apimachinery/pkg/types"},
	},
	{
		name: "kubectl-export", dir: "cmd/kubectl-memfit/internal/export", noStd: pure, // recommendations as patches
		ours: []string{
			"api/v1alpha1", "cmd/kubectl-memfit/internal/report", "internal/format", "internal/identity", "internal/quote",
			"internal/workloadkind",
		},
		outside: []string{
			"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/api/resource",
			"k8s.io/apimachinery/pkg/apis/meta/v1",
			"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "k8s.io/apimachinery/pkg/runtime", "sigs.k8s.io/yaml",
		},
	},
	{
		name: "preview", dir: "cmd/kubectl-memfit/internal/preview", // what make demo shows while a node is compiled
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
		// yaml/v3 keeps comments and order of the manifests it edits; difflib writes the -o diff of two of them; sigs json
		// reads as the API server does.
		outside: []string{
			"github.com/pmezard/go-difflib/difflib", "github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3",
			"k8s.io/...", "sigs.k8s.io/json", "sigs.k8s.io/yaml",
		},
		never: []string{"sigs.k8s.io/controller-runtime/..."},
	},
}

// free are the trees that may import anything. No room's line names them, so only test files and they themselves use
// them.
var free = []string{"test/...", "hack/..."}

var (
	// pure rooms give equal output for equal input.
	pure = []string{"os", "net", "log", "context"}
	// ownsNoProcess: files, flags, environment and exit codes belong to cmd.
	ownsNoProcess = []string{"os"}

	// pods is what reading and editing a pod takes.
	pods = []string{
		"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/types",
	}
	// cached is what reading informer caches takes, and nothing that writes to the cluster by itself.
	cached = []string{
		"k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/client-go/tools/cache",
		"sigs.k8s.io/controller-runtime/pkg/cache", "sigs.k8s.io/controller-runtime/pkg/client",
		"sigs.k8s.io/controller-runtime/pkg/log",
	}
	// edge is what the rooms that talk to Kubernetes use.
	edge = []string{
		"github.com/go-logr/logr/...", "github.com/prometheus/client_golang/...", "k8s.io/...", "sigs.k8s.io/...",
	}

	clients = []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}
	kinds   = []string{"k8s.io/api/..."}
)
