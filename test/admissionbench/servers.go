// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	podwebhook "github.com/memfit/memfit/webhooks/pod"
)

// server is one process that answers AdmissionReviews.
type server struct {
	name, path, address string
	// metrics is where it reports its own latency; empty: it does not, or not finely enough.
	metrics string
	command *exec.Cmd
	// patches: a governed pod must come back with a patch.
	patches bool
	// ended is closed when the process is gone.
	ended chan struct{}
}

// startServers starts all of them; what did start is returned also with an error.
func startServers(
	ctx context.Context, o options, dir string, certs certificates, kubeconfig string,
) ([]*server, error) {
	ports, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	at := func(i int) string { return "127.0.0.1:" + strconv.Itoa(ports[i]) }
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	servers := []*server{
		{name: "noop", path: "/", address: at(0), command: exec.CommandContext(
			ctx, self, "--serve", "noop", "--certificates", certs.dir, "--port", strconv.Itoa(ports[0]), "--limit",
			o.limit.String(),
		)},
		{
			name: "memfit", path: podwebhook.Path, address: at(1), metrics: "http://" + at(2) + "/metrics", patches: true,
			command: exec.CommandContext(
				ctx, self, "--serve", "memfit", "--certificates", certs.dir, "--port", strconv.Itoa(ports[1]), "--metrics", at(2),
				"--limit", o.limit.String(),
			),
		},
	}
	if o.vpa != "" {
		servers = append(servers, &server{
			name: "vpa", path: "/", address: at(4), patches: true,
			// Its own default is --v=4, which logs every patch; the least is fairer.
			command: exec.CommandContext(ctx, o.vpa, "--kubeconfig", kubeconfig, "--port", strconv.Itoa(ports[4]), "--address",
				at(3), "--register-webhook=false", "--v=0",
				"--client-ca-file", certs.ca, "--tls-cert-file", filepath.Join(certs.dir,
					"tls.crt"), "--tls-private-key", filepath.Join(certs.dir, "tls.key")),
		})
	}
	for i, s := range servers {
		if err := s.start(dir, kubeconfig); err != nil {
			return servers[:i], err
		}
	}
	for _, s := range servers {
		if err := s.waitUntilReady(ctx, certs, dir); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

// start runs the server on the first core; the client has the others, so that neither takes time from the other.
func (s *server) start(dir, kubeconfig string) error {
	log, err := os.Create(filepath.Join(dir, s.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	if taskset, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 0 {
		s.command.Args = append([]string{"taskset", "-c", "0", s.command.Path}, s.command.Args[1:]...)
		s.command.Path = taskset
	}
	// Lists over watch streams are for API servers; this one answers lists.
	s.command.Env = append(
		os.Environ(), "KUBECONFIG="+kubeconfig, "KUBE_FEATURE_WatchListClient=false", "POD_NAMESPACE=memfit-system",
		"NAMESPACE=kube-system",
	)
	s.command.Stdout, s.command.Stderr = log, log
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also when the bench itself is killed
	s.command.Cancel = func() error { return s.command.Process.Signal(syscall.SIGTERM) }
	s.command.WaitDelay = 5 * time.Second
	if err := s.command.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		_ = s.command.Wait()
		close(s.ended)
	}()
	return nil
}

func (s *server) stop() {
	_ = s.command.Process.Kill()
	<-s.ended
}

// waitUntilReady waits for the first TLS handshake: both operators open the port when their caches are full.
func (s *server) waitUntilReady(ctx context.Context, certs certificates, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&tls.Dialer{Config: certs.client}).DialContext(ctx, "tcp", s.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
			continue
		case <-s.ended:
		case <-ctx.Done():
		}
		said, _ := os.ReadFile(filepath.Join(dir, s.name+".log"))
		return fmt.Errorf("%s does not answer on %s: %w; its log:\n%s", s.name, s.address, err, said[:min(len(said), 3000)])
	}
}

// stat is what the process has taken, from /proc.
func (s *server) stat() (procfs.ProcStat, error) {
	p, err := procfs.NewProc(s.command.Process.Pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that no port is given twice
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
