// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
	"github.com/memfit/memfit/test/budget"
)

// pod is the metadata of a pod: its name, then labels, and annotations after a "#".
func pod(name string, pairs ...string) *metav1.ObjectMeta {
	m := &metav1.ObjectMeta{Namespace: "ci", Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if annotation, found := strings.CutPrefix(key, "#"); found {
			m.Annotations[annotation] = value
		} else {
			m.Labels[key] = value
		}
	}
	return m
}

// owner is "tekton.dev/v1 TaskRun/build-x7k2p".
func owner(text string) memory.WorkloadRef {
	apiVersion, rest, _ := strings.Cut(text, " ")
	kind, name, _ := strings.Cut(rest, "/")
	return memory.WorkloadRef{APIVersion: apiVersion, Kind: kind, Namespace: "ci", Name: name}
}

// TestPlatforms: pods as each platform writes them, of two runs, have one identity; another step has another.
func TestPlatforms(t *testing.T) {
	covered := map[string]bool{}
	for name, tc := range map[string]struct {
		owner string
		pod   *metav1.ObjectMeta
		want  string // empty: the owner identifies it
	}{
		"a task of a pipeline": {"tekton.dev/v1 TaskRun/ci-x7k2p-unit", pod("ci-x7k2p-unit-pod",
			"app.kubernetes.io/managed-by=tekton-pipelines", "tekton.dev/memberOf=tasks", "tekton.dev/pipeline=build-and-test",
			"tekton.dev/pipelineRun=ci-x7k2p", "tekton.dev/pipelineTask=unit", "tekton.dev/task=go-test",
			"tekton.dev/taskRun=ci-x7k2p-unit"), "tekton: build-and-test/unit"},
		"a task of a pipeline that is embedded in its run": {"tekton.dev/v1 TaskRun/on-push-b4c6d-unit", pod(
			"on-push-b4c6d-unit-pod", "tekton.dev/pipeline=on-push-b4c6d", "tekton.dev/pipelineRun=on-push-b4c6d",
			"tekton.dev/pipelineTask=unit",
			"tekton.dev/taskRun=on-push-b4c6d-unit"), "tekton: on-push/unit"},
		"a task without a pipeline": {"tekton.dev/v1 TaskRun/lint-9wz2q", pod("lint-9wz2q-pod", "tekton.dev/task=lint",
			"tekton.dev/taskRun=lint-9wz2q"), "tekton: lint"},
		"a task that is embedded in its run": {"tekton.dev/v1 TaskRun/lint-9wz2q", pod("lint-9wz2q-pod",
			"tekton.dev/taskRun=lint-9wz2q"), "tekton: lint"},
		"a step of a workflow": {"argoproj.io/v1alpha1 Workflow/train-kx8vd", pod("train-kx8vd-fit-model-2843519087",
			"workflows.argoproj.io/workflow=train-kx8vd", "workflows.argoproj.io/completed=false"), "argo: train/fit-model"},
		"a step of a CronWorkflow": {"argoproj.io/v1alpha1 Workflow/nightly-1764201600", pod(
			"nightly-1764201600-load-77120934", "workflows.argoproj.io/workflow=nightly-1764201600"), "argo: nightly/load"},
		"the agent of a workflow": {"argoproj.io/v1alpha1 Workflow/train-kx8vd", pod("train-kx8vd-1340600742-agent",
			"workflows.argoproj.io/workflow=train-kx8vd", "workflows.argoproj.io/component=agent"), "argo: train/agent"},
		"a workflow of one step": {"argoproj.io/v1alpha1 Workflow/hello-7dhtp", pod("hello-7dhtp",
			"workflows.argoproj.io/workflow=hello-7dhtp"), "argo: hello"},
		"a step whose pod's name does not show its template": {"argoproj.io/v1alpha1 Workflow/train-kx8vd",
			pod("train-kx8vd-2843519087", "workflows.argoproj.io/workflow=train-kx8vd"), ""},
		"a GitHub runner": {"actions.github.com/v1alpha1 EphemeralRunner/linux-large-4dqcm-runner-9xk2v",
			pod("linux-large-4dqcm-runner-9xk2v", "actions-ephemeral-runner=True",
				"actions.github.com/scale-set-name=linux-large", "actions.github.com/scale-set-namespace=ci"),
			"github: linux-large"},
		"a GitLab job": {"v1 Pod/runner-xdnsadt3-project-2806-concurrent-0-rg4lh", pod(
			"runner-xdnsadt3-project-2806-concurrent-0-rg4lh", "#job.runner.gitlab.com/id=16326",
			"#job.runner.gitlab.com/name=test 2/5", "#project.runner.gitlab.com/id=2806"), "gitlab: 2806/test"},
		"a Jenkins agent of a pipeline": {"v1 Pod/shop-main-13-5qsdm-2n7dh-f735m", pod("shop-main-13-5qsdm-2n7dh-f735m",
			"jenkins/jenkins-jenkins-agent=true", "jenkins/label=shop_main_13-5qsdm",
			"jenkins/label-digest=48a2ae816290614619175dc7517284d3d3fd1897"), "jenkins: shop_main"},
		"a Jenkins agent of a template": {"v1 Pod/maven-hdjp8", pod("maven-hdjp8", "jenkins/label=maven"), "jenkins: maven"},
		"an Airflow task": {"v1 Pod/etl-load-orders-8f2a", pod("etl-load-orders-8f2a", "dag_id=etl", "task_id=load_orders",
			"run_id=scheduled__2026-11-27", "try_number=2", "kubernetes_executor=True", "airflow_version=3.0.2", "map_index=7",
		), "airflow: etl/load_orders"},
		"a pod of an Airflow operator": {"v1 Pod/train-3f9b", pod("train-3f9b", "dag_id=ml", "task_id=train",
			"kubernetes_pod_operator=True", "try_number=1"), "airflow: ml/train"},
		"labels like Airflow's": {"v1 Pod/mine", pod("mine", "dag_id=ml", "task_id=train"), ""},
		"a Spark driver": {"sparkoperator.k8s.io/v1beta2 SparkApplication/daily-1764201600123456789", pod("daily-driver",
			"spark-role=driver", "sparkoperator.k8s.io/app-name=daily-1764201600123456789", "spark-app-name=daily"),
			"spark: daily/driver"},
		"a Spark executor": {"v1 Pod/sales-etl-driver", pod("sales-etl-7b1-exec-3", "spark-role=executor", "spark-exec-id=3",
			"spark-app-name=sales-etl", "spark-app-selector=spark-12f88a73"), "spark: sales-etl/executor"},
		"a Ray worker of a RayJob": {"ray.io/v1 RayCluster/tune-nqzqz", pod("tune-nqzqz-small-worker-x7k2p",
			"ray.io/cluster=tune-nqzqz", "ray.io/group=small", "ray.io/node-type=worker"), "ray: tune/small"},
		"a worker of a PyTorchJob": {"kubeflow.org/v1 PyTorchJob/bert-v8wz2", pod("bert-v8wz2-worker-0",
			"training.kubeflow.org/job-name=bert-v8wz2", "training.kubeflow.org/replica-type=worker",
			"training.kubeflow.org/replica-index=0"), "kubeflow: bert/worker"},
		"a pod of a JobSet": {"jobset.x-k8s.io/v1alpha2 JobSet/bert", pod("bert-node-0-0-x7k2p",
			"jobset.sigs.k8s.io/jobset-name=bert", "jobset.sigs.k8s.io/replicatedjob-name=node"), "jobset: bert/node"},
		"an agent's sandbox": {"agents.x-k8s.io/v1alpha1 Sandbox/python-m5zh6", pod("python-m5zh6",
			"agents.x-k8s.io/sandbox-name-hash=10316c17", "agents.x-k8s.io/sandbox-template-ref-hash=0d20a304"),
			"sandbox: 0d20a304"},
		"a Deployment's pod with a pipeline's labels": {"apps/v1 Deployment/web", pod("web-1", "tekton.dev/pipeline=a",
			"tekton.dev/pipelineTask=b"), ""},
		"a bare pod":          {"v1 Pod/debug", pod("debug", "app=web"), ""},
		"another TaskRun":     {"example.com/v1 TaskRun/lint-9wz2q", pod("lint", "tekton.dev/task=lint"), ""},
		"a runner unlabeled":  {"actions.github.com/v1alpha1 EphemeralRunner/r", pod("r"), ""},
		"a JobSet incomplete": {"jobset.x-k8s.io/v1alpha2 JobSet/bert", pod("b", "jobset.sigs.k8s.io/jobset-name=bert"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			id, found := Find(tc.pod, owner(tc.owner), nil)
			if found != (tc.want != "") || found && id.String() != tc.want {
				t.Fatalf("identity is %q, want %q", id.String(), tc.want)
			}
			covered[id.Platform] = true
		})
	}
	page, err := os.ReadFile("../../docs/reference/platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range platforms {
		owner := "none, or a Pod"
		if len(p.Kinds) > 0 {
			owner = "`" + strings.Join(p.Kinds, "`, `") + "` of `" + p.Group + "`"
		}
		documented := func(line string) bool {
			return strings.HasPrefix(line, "| `"+p.Name+"` |") && strings.Contains(line, " | "+owner+" | ")
		}
		if !covered[p.Name] || !slices.ContainsFunc(strings.Split(string(page), "\n"), documented) {
			t.Errorf("%s of %s has no test, or no row in docs/reference/platforms.md", p.Name, owner)
		}
		for _, k := range workloadkind.All() {
			if strings.EqualFold(p.Name, k.Name) {
				t.Errorf("records of %s would be called like those of a %s", p.Name, k.Name)
			}
		}
	}
}

// TestSelector: it selects the pods of each run of a step, and where labels show the step, no other.
func TestSelector(t *testing.T) {
	run := owner("tekton.dev/v1 TaskRun/x")
	unit := []string{
		"tekton.dev/pipeline=build", "tekton.dev/pipelineRun=b", "tekton.dev/pipelineTask=unit", "tekton.dev/taskRun=b-unit",
	}
	for name, tc := range map[string]struct {
		owner  memory.WorkloadRef
		labels []string
		keys   []string
		want   string
	}{
		"a task of a pipeline":    {run, unit, nil, "tekton.dev/pipelineTask=unit,tekton.dev/taskRun"},
		"a task that is embedded": {run, []string{"tekton.dev/taskRun=x"}, nil, "tekton.dev/taskRun"},
		"labels of a profile":     {run, unit, []string{"tekton.dev/pipeline"}, "tekton.dev/pipeline=build"},
		"a step of a workflow": {
			owner("argoproj.io/v1alpha1 Workflow/x"), []string{"workflows.argoproj.io/workflow=x"}, nil,
			"workflows.argoproj.io/workflow",
		},
		"annotations": {
			owner("v1 Pod/x"), []string{"#" + gitlabProject + "=1", "#" + gitlabJob + "=b"}, nil, "",
		},
		"a value that is no label": {run, []string{"step=a b"}, []string{"step"}, ""},
	} {
		id, found := Find(pod("x-main-1", tc.labels...), tc.owner, tc.keys)
		if got := id.Selector().String(); !found || got != tc.want {
			t.Errorf("%s: selected by %q, want %q", name, got, tc.want)
		}
	}
}

// TestLabels: labels that a profile names identify a pod if it has all of them, and win over the table.
func TestLabels(t *testing.T) {
	keys := []string{"app", "step"}
	run := owner("tekton.dev/v1 TaskRun/ci-x7k2p-unit")
	id, found := Find(pod("a", "app=shop", "step=unit", "tekton.dev/task=lint"), run, keys)
	if !found || id.String() != "labels: shop/unit" {
		t.Errorf("identity is %q", id.String())
	}
	for name, m := range map[string]*metav1.ObjectMeta{
		"without": pod("a", "app=shop"), "empty": pod("a", "app=shop", "step="),
	} {
		if id, found := Find(m, run, keys); found {
			t.Errorf("%s the label: %q", name, id.String())
		}
	}
	if id, found := Find(pod("a", "app=shop", "step=unit"), owner("apps/v1 Deployment/web"), keys); found {
		t.Errorf("the pod of a Deployment is %q", id.String())
	}
}

// TestRef: names of records are readable, bounded, and differ when anything does: keys, values, where one ends.
func TestRef(t *testing.T) {
	ids := []Identity{
		{Platform: "tekton", Values: []string{"build-and-test", "unit"}},
		{Platform: "tekton", Values: []string{"build-and", "test-unit"}},
		{Platform: "tekton", Values: []string{"build.and.test", "unit"}},
		{Platform: "tekton", Values: []string{"Build-and-test", "unit"}},
		{Platform: Labeled, Values: []string{"a"}, Keys: []string{"x"}},
		{Platform: Labeled, Values: []string{"a"}, Keys: []string{"y"}},
		{Platform: "gitlab", Values: []string{"1", "тест ---"}},
		{Platform: "gitlab", Values: []string{"1", strings.Repeat("long ", 200)}},
	}
	var names []string
	for i := range ids {
		ref := ids[i].Ref("ci")
		if !IsIdentity(ref) || ref.Namespace != "ci" || len(ref.Name) > maxReadable+17 || slices.Contains(names, ref.Name) ||
			strings.Trim(ref.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Contains(ref.Name, "--") {
			t.Errorf("%s is %+v, after %q", ids[i].String(), ref, names)
		}
		names = append(names, ref.Name)
		if UID(ref) == UID(ids[i].Ref("other")) {
			t.Errorf("%s of two namespaces has one UID", ids[i].String())
		}
	}
	if !strings.HasPrefix(names[0], "tekton-build-and-test-unit-") {
		t.Errorf("%s is not readable", names[0])
	}
}

// FuzzOf: labels, annotations and names are those of anybody who may create pods.
func FuzzOf(f *testing.F) {
	f.Add("ci-x7k2p-unit-pod", "TaskRun", "tekton.dev/v1", "ci-x7k2p-unit", "tekton.dev/pipeline", "a", "x 1/2")
	f.Add("a", "Workflow", "argoproj.io/v1", "", "-", "_1-abcde", "")
	f.Add("a", "Pod", "v1", "a", "jenkins/label", "_1-abcde", "")
	f.Fuzz(func(t *testing.T, name, kind, apiVersion, by, key, value, job string) {
		m := pod(name, key+"="+value, "#"+gitlabJob+"="+job, "#"+gitlabProject+"="+value)
		ref := memory.WorkloadRef{APIVersion: apiVersion, Kind: kind, Namespace: "ci", Name: by}
		size := len(name) + len(kind) + len(apiVersion) + len(by) + len(key) + len(value) + len(job)
		budget.Check(t, identityBudget, size, func() { checkNames(t, m, ref, key) })
	})
}

// identityBudget is what finding the identity of any pod may take.
var identityBudget = budget.Budget{Bytes: 64 << 10, PerByte: 64, CPU: time.Second}

// checkNames checks what the identities of a pod are called.
func checkNames(t *testing.T, m *metav1.ObjectMeta, ref memory.WorkloadRef, key string) {
	t.Helper()
	for _, keys := range [][]string{nil, {key}} {
		id, found := Find(m, ref, keys)
		if !found {
			continue
		}
		got := id.Ref("ci").Name
		if len(id.Values) == 0 || slices.Contains(id.Values, "") || len(got) > maxReadable+17 ||
			strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || got[0] == '-' {
			t.Errorf("%q is called %q", id.String(), got)
		}
	}
}
