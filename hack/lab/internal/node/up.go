// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/process"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

// StartSteps is how many steps Start reports.
const StartSteps = 5

// Daemons are the names of the processes of a healthy lab, in the order they start.
var Daemons = []string{"etcd", "containerd", "kube-apiserver", "api-forward", "kube-controller-manager", "kube-scheduler", "kubelet", "cert-manager"}

// identity is what a lab was started with. It is written last: a lab without it never came up.
type identity struct {
	Bin     string  `json:"bin"`
	Options Options `json:"options"`
	Images  []Image `json:"images"`
}

func (n *Node) identityFile() string { return n.data("lab.json") }

// Reusable says why the running lab cannot be used as it is, or nil.
func (n *Node) Reusable(ctx context.Context) error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	if id.Bin != n.Bin || id.Options != n.Options {
		return errors.New("the lab that is up has other programs or options")
	}
	return n.Healthy(ctx)
}

// Refresh imports the images that changed since the running lab was started. Running pods keep what they have.
func (n *Node) Refresh(ctx context.Context) error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	for _, image := range n.Images {
		if slices.Contains(id.Images, image) { // the path names the content
			continue
		}
		if err := n.Import(ctx, image.Path); err != nil {
			return err
		}
	}
	return n.writeIdentity()
}

// Healthy says what is wrong with the running lab, or nil: every daemon runs, the API server serves, the node takes pods.
func (n *Node) Healthy(ctx context.Context) error {
	records, err := n.store().List()
	if err != nil {
		return err
	}
	for _, name := range Daemons {
		i := slices.IndexFunc(records, func(r process.Record) bool { return r.Name == name })
		if i < 0 || !records[i].Alive() {
			return fmt.Errorf("%s does not run", name)
		}
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	if err := a.ready(ctx); err != nil {
		return fmt.Errorf("the API server is not ready: %w", err)
	}
	return a.nodeReady(ctx)
}

// Start brings up a new node. The machine must be clean: call Down before.
func (n *Node) Start(ctx context.Context, report *progress.Reporter) error {
	if err := n.prepare(ctx); err != nil {
		return err
	}
	step := func(ctx context.Context, name, doing string, do func(context.Context) error) error {
		s := report.Start(name, doing)
		if err := do(ctx); err != nil {
			s.Fail()
			return err
		}
		s.Done("done")
		return nil
	}
	// Unpacking 700 MB of images takes as long as everything else together, so both go on at the same time.
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if _, err := n.store().Run(n.containerd()); err != nil {
			return err
		}
		return step(groupCtx, "images", "importing", n.importAll)
	})
	group.Go(func() error {
		if err := step(groupCtx, "control plane", "starting", n.startControlPlane); err != nil {
			return err
		}
		if err := step(groupCtx, "node", "starting", n.startKubelet); err != nil {
			return err
		}
		return step(groupCtx, "cert-manager", "starting", n.startCertManager)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	// The names of the daemons are checked here, too: one that died meanwhile is noticed now and not in somebody's test.
	return step(ctx, "health", "checking", func(ctx context.Context) error {
		if err := waitFor(ctx, 30*time.Second, n.Healthy); err != nil {
			return fmt.Errorf("the lab came up but is not well: %w", err)
		}
		return n.writeIdentity()
	})
}

func (n *Node) writeIdentity() error {
	data, err := json.MarshalIndent(identity{Bin: n.Bin, Options: n.Options, Images: n.Images}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(n.identityFile(), append(data, '\n'), 0o644)
}

func (n *Node) readIdentity() (identity, error) {
	var id identity
	data, err := os.ReadFile(n.identityFile())
	if errors.Is(err, fs.ErrNotExist) {
		return id, errors.New("no lab is up: `make lab-up` starts one")
	}
	if err != nil {
		return id, fmt.Errorf("reading what the lab was started with: %w", err)
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return id, fmt.Errorf("reading %s: %w", n.identityFile(), err)
	}
	return id, nil
}

// Attach fills in what the running lab was started with.
func (n *Node) Attach() error {
	id, err := n.readIdentity()
	if err != nil {
		return err
	}
	n.Bin, n.Options, n.Images = id.Bin, id.Options, id.Images
	return nil
}

// prepare makes everything that daemons expect to find.
func (n *Node) prepare(ctx context.Context) error {
	for _, dir := range []string{n.Layout.State, n.Layout.Run, n.data("bin"), n.data("kubelet")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := machine.TakeSnapshot(n.snapshot()); err != nil {
		return err
	}
	if err := makeCgroups(); err != nil {
		return err
	}
	err := netns.Create(ctx, netns.Network{
		Path: n.Layout.NetNS(), Bridge: layout.Bridge, NodeCIDR: layout.NodeCIDR, Local: []string{layout.ServiceIP},
	})
	if err != nil {
		return err
	}
	if err := n.writeConfig(); err != nil {
		return err
	}
	return copySelf(n.data("bin/lab"))
}

// copySelf puts this very program where the forwarders run it from: `go run` deletes its binary when it ends.
func copySelf(path string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	if err := os.WriteFile(path+".new", data, 0o755); err != nil {
		return fmt.Errorf("copying this program: %w", err)
	}
	return os.Rename(path+".new", path)
}

func (n *Node) startControlPlane(ctx context.Context) error {
	listen, err := freeAddress(n.Options.ForwardPort)
	if err != nil {
		return err
	}
	if err := n.writeCredentials("https://" + listen); err != nil {
		return err
	}
	specs := []process.Spec{
		n.etcd(), n.apiServer(),
		n.forwarder("api-forward", listen, fmt.Sprintf("%s:%d", layout.NodeIP, layout.APIPort)),
	}
	for _, spec := range specs {
		if _, err := n.store().Run(spec); err != nil {
			return err
		}
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	// 5 s on two idle cores; a machine that compiles at the same time takes longer.
	if err := n.wait(ctx, 2*time.Minute, []string{"etcd", "kube-apiserver", "api-forward"}, a.ready); err != nil {
		return err
	}
	for _, spec := range []process.Spec{n.controllerManager(), n.scheduler()} {
		if _, err := n.store().Run(spec); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) startKubelet(ctx context.Context) error {
	if _, err := n.store().Run(n.kubelet()); err != nil {
		return err
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	return n.wait(ctx, 2*time.Minute, []string{"kubelet", "containerd", "kube-apiserver"}, a.nodeReady)
}

// wait waits for a check, but not for a daemon that is dead already; then its log says why.
func (n *Node) wait(ctx context.Context, limit time.Duration, daemons []string, check func(context.Context) error) error {
	var dead string
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := waitFor(ctx, limit, func(ctx context.Context) error {
		for _, name := range daemons {
			if r, err := n.store().Get(name); err == nil && !r.Alive() {
				dead = name
				cancel()
			}
		}
		return check(ctx)
	})
	if err == nil {
		return nil
	}
	if dead == "" {
		dead = daemons[0]
	} else {
		err = fmt.Errorf("%s ended", dead)
	}
	log := n.Layout.Log(dead)
	return fmt.Errorf("%w\nthe last lines of %s:\n%s", err, log, logTail(log, 15))
}

// freeAddress returns the wanted port on the loopback if nobody listens there, else a free one.
func freeAddress(port int) (string, error) {
	for _, candidate := range []int{port, 0} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", candidate))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String(), nil
	}
	return "", errors.New("no free port on the loopback")
}

// Restart ends a daemon at once, as a crash would, and starts it again as it was.
func (n *Node) Restart(ctx context.Context, name string) error {
	r, err := n.store().Get(name)
	if err != nil {
		return err
	}
	if err := r.Stop(0); err != nil {
		return err
	}
	if _, err := n.store().Run(r.Spec); err != nil {
		return err
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	return n.wait(ctx, 2*time.Minute, []string{name}, a.ready)
}

// Forward makes an address inside the namespace reachable on the machine's loopback and returns where.
func (n *Node) Forward(target, listen string) (string, error) {
	if listen == "" {
		var err error
		if listen, err = freeAddress(0); err != nil {
			return "", err
		}
	}
	name := "forward-" + filepath.Base(listen)
	if _, err := n.store().Run(n.forwarder(name, listen, target)); err != nil {
		return "", err
	}
	return listen, waitFor(context.Background(), 5*time.Second, func(context.Context) error {
		conn, err := net.Dial("tcp", listen)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
