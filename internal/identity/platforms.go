// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// platform is a row of the table. Pods of a platform are of one kind if their values are equal.
// docs/reference/platforms.md has the source of each row.
type platform struct {
	Name  string   // the platform's name, and the prefix of its records' names
	Group string   // the API group of the pods' owners
	Kinds []string // the kinds of owners; empty: pods have no owner, or another pod is their owner

	equal   []string // labels with equal values in all pods of an identity; a pod may lack them
	present []string // labels whose values differ by run; a pod may lack them
	// values returns the values that identify a pod; nil: none. Callers omit empty values. owner is the owner's name.
	values func(pod metav1.Object, labels map[string]string, owner string) []string
}

const (
	gitlabProject = "project.runner.gitlab.com/id"
	gitlabJob     = "job.runner.gitlab.com/name"
)

var platforms = []platform{
	{
		Name: "tekton", Group: "tekton.dev", Kinds: []string{"TaskRun"},
		equal: []string{"tekton.dev/pipelineTask", "tekton.dev/task"}, present: []string{"tekton.dev/taskRun"},
		values: func(_ metav1.Object, l map[string]string, owner string) []string {
			pipeline := l["tekton.dev/pipeline"]
			if run := l["tekton.dev/pipelineRun"]; pipeline == run { // an embedded pipeline has its run's name
				pipeline = withoutRuns(run)
			}
			return []string{pipeline, cmp.Or(
				l["tekton.dev/pipelineTask"], l["tekton.dev/task"], l["tekton.dev/clusterTask"], withoutRuns(owner),
			)}
		},
	},
	{
		Name: "argo", Group: "argoproj.io", Kinds: []string{"Workflow"},
		present: []string{"workflows.argoproj.io/workflow"},
		values: func(pod metav1.Object, l map[string]string, owner string) []string {
			if pod.GetName() == owner { // the entrypoint of the workflow is the step
				return []string{withoutRuns(owner)}
			}
			if l["workflows.argoproj.io/component"] == "agent" { // the pod runs the HTTP templates of a workflow
				return []string{withoutRuns(owner), "agent"}
			}
			step, of := strings.CutPrefix(pod.GetName(), owner+"-")
			i := strings.LastIndexByte(step, '-')
			if !of || i < 1 { // names with POD_NAMES=v1 do not contain the template
				return nil
			}
			return []string{withoutRuns(owner), step[:i]}
		},
	},
	byLabels("", "actions.github.com/scale-set-name", platform{
		Name: "github", Group: "actions.github.com", Kinds: []string{"EphemeralRunner"},
	}),
	{
		Name: "gitlab",
		values: func(pod metav1.Object, _ map[string]string, _ string) []string {
			project, job := pod.GetAnnotations()[gitlabProject], pod.GetAnnotations()[gitlabJob]
			if project == "" || job == "" {
				return nil
			}
			if i := strings.LastIndexByte(job, ' '); i > 0 && strings.Trim(job[i+1:], "0123456789/") == "" {
				job = job[:i]
			}
			return []string{project, job}
		},
	},
	{
		Name:    "jenkins",
		present: []string{"jenkins/label"},
		values: func(_ metav1.Object, l map[string]string, _ string) []string {
			label := l["jenkins/label"]
			i := strings.LastIndexByte(label, '_') // "shop_main_13-5qsdm"
			if build, run, found := strings.Cut(label[i+1:], "-"); i > 0 && found && len(run) == 5 &&
				strings.Trim(build, "0123456789") == "" {
				label = label[:i]
			}
			return []string{label}
		},
	},
	{
		Name:  "airflow",
		equal: []string{"dag_id", "task_id"},
		values: func(_ metav1.Object, l map[string]string, _ string) []string {
			if l["kubernetes_executor"] == "" && l["kubernetes_pod_operator"] == "" {
				return nil
			}
			return all(l["dag_id"], l["task_id"])
		},
	},
	spark("sparkoperator.k8s.io", "SparkApplication"),
	spark(""), // spark-submit: the driver has no owner, and is the owner of its executors
	byLabels("ray.io/cluster", "ray.io/group", platform{Name: "ray", Group: "ray.io", Kinds: []string{"RayCluster"}}),
	byLabels("training.kubeflow.org/job-name", "training.kubeflow.org/replica-type", platform{
		Name: "kubeflow", Group: "kubeflow.org",
		Kinds: []string{"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"},
	}),
	byLabels("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name", platform{
		Name: "jobset", Group: "jobset.x-k8s.io", Kinds: []string{"JobSet"},
	}),
	byLabels("", "agents.x-k8s.io/sandbox-template-ref-hash", platform{
		Name: "sandbox", Group: "agents.x-k8s.io", Kinds: []string{"Sandbox"},
	}),
}

// byLabels completes the row of a platform whose pods have a label for their run and a label for their part in the run.
// run is empty if the label for the part suffices.
func byLabels(run, part string, p platform) platform {
	p.equal = []string{part}
	if run != "" {
		p.present = []string{run}
	}
	p.values = func(_ metav1.Object, l map[string]string, _ string) []string {
		if run == "" {
			return all(l[part])
		}
		return all(withoutRuns(l[run]), l[part])
	}
	return p
}

// spark returns a row of Spark for owners of these kinds.
func spark(group string, kinds ...string) platform {
	return platform{
		Name: "spark", Group: group, Kinds: kinds,
		equal: []string{"spark-role"},
		values: func(_ metav1.Object, l map[string]string, _ string) []string {
			return all(withoutRuns(cmp.Or(l["sparkoperator.k8s.io/app-name"], l["spark-app-name"])), l["spark-role"])
		},
	}
}

// all returns the values; nil if one is empty.
func all(values ...string) []string {
	if slices.Contains(values, "") {
		return nil
	}
	return values
}

// identify returns the values that identify a pod; false if the pod is not of this platform, or has none.
func (p *platform) identify(pod metav1.Object, owner memory.WorkloadRef) ([]string, bool) {
	matches := workloadkind.Group(owner.APIVersion) == p.Group && slices.Contains(p.Kinds, owner.Kind)
	if len(p.Kinds) == 0 {
		matches = workloadkind.IsPod(owner.APIVersion, owner.Kind)
	}
	if !matches {
		return nil, false
	}
	values := slices.DeleteFunc(p.values(pod, pod.GetLabels(), owner.Name), func(v string) bool { return v == "" })
	return values, len(values) > 0
}
