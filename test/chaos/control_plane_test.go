// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// programs returns the directory of etcd, kube-apiserver and kube-controller-manager.
func programs() string { return os.Getenv("KUBEBUILDER_ASSETS") }

// daemon is a process of the control plane, which can be killed and started again.
type daemon struct {
	name string
	args []string
	log  string
	cmd  *exec.Cmd
}

func (d *daemon) start(t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // the child keeps its copy open
	d.cmd = exec.Command(filepath.Join(programs(), d.name), d.args...)
	d.cmd.Stdout, d.cmd.Stderr = out, out
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill kills the process with SIGKILL and waits for its end.
func (d *daemon) kill() {
	if d.cmd != nil && d.cmd.Process != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	}
}

// controlPlane consists of etcd, an API server and the controllers of Kubernetes.
type controlPlane struct {
	dir         string
	authority   *authority
	etcd, api   *daemon
	controllers *daemon
	// toEtcd is the API server's link to etcd.
	toEtcd *link
	etcdAt string
	config *rest.Config
}

const adminToken = "admin"

// startControlPlane starts all processes; extra are additional flags of etcd.
func startControlPlane(t *testing.T, extra ...string) *controlPlane {
	t.Helper()
	c := &controlPlane{dir: t.TempDir(), authority: newAuthority(t), etcdAt: "127.0.0.1:" + strconv.Itoa(freePort(t))}
	c.toEtcd = newLink(t, func() string { return c.etcdAt })
	ca := c.file(t, "ca.crt", c.authority.pem)
	certFile, keyFile := c.authority.signed(t, c.sub(t, "serving"), time.Now().Add(24*time.Hour))
	accounts := c.file(t, "accounts.key", keyPEM(t, newKey(t)))
	tokens := c.file(t, "tokens.csv", []byte(adminToken+",admin,admin,system:masters\n"))
	port := freePort(t)
	c.etcd = c.daemon("etcd", append([]string{
		"--name=chaos", "--data-dir=" + c.sub(t, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=http://" + c.etcdAt, "--advertise-client-urls=http://" + c.etcdAt,
		fmt.Sprintf("--listen-peer-urls=http://127.0.0.1:%d", freePort(t)),
	}, extra...)...)
	c.api = c.daemon("kube-apiserver",
		"--etcd-servers=http://"+c.toEtcd.Addr().String(), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port), "--tls-cert-file="+certFile, "--tls-private-key-file="+keyFile,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://chaos", "--service-account-key-file="+accounts,
		"--service-account-signing-key-file="+accounts,
		// Kubernetes 1.37 does not publish a loopback address as endpoint
		"--endpoint-reconciler-type=none",
		// no controller creates ServiceAccounts, and pods do not need them
		"--disable-admission-plugins=ServiceAccount", "--profiling=false", "--cert-dir="+c.sub(t, "made"),
		// otherwise the API server takes a minute to shut down
		"--shutdown-delay-duration=0s",
	)
	c.config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: adminToken, QPS: -1, Timeout: 10 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem},
	}
	kubeconfig := filepath.Join(c.dir, "controllers.kubeconfig")
	writeKubeconfig(t, kubeconfig, c.config.Host, c.authority.pem)
	c.controllers = c.daemon("kube-controller-manager",
		"--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0", "--root-ca-file="+ca,
		"--controllers=deployment-controller,replicaset-controller,namespace-controller,garbage-collector-controller,"+
			"disruption-controller", "--kube-api-qps=400", "--kube-api-burst=800", "--concurrent-namespace-syncs=4",
	)
	t.Cleanup(func() {
		c.controllers.kill()
		c.api.kill()
		c.etcd.kill()
	})
	c.etcd.start(t)
	c.api.start(t)
	c.awaitAPI(t, 2*time.Minute)
	c.controllers.start(t)
	return c
}

func (c *controlPlane) daemon(name string, args ...string) *daemon {
	return &daemon{name: name, args: args, log: filepath.Join(c.dir, name+".log")}
}

func (c *controlPlane) sub(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c *controlPlane) file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitAPI waits until the API server serves.
func (c *controlPlane) awaitAPI(t *testing.T, limit time.Duration) {
	t.Helper()
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	within(t, limit, "the API server to be ready", func() error {
		_, err := get(client, c.config.Host+"/readyz")
		return err
	})
}

// restartAPI kills the API server, and starts it again after the time down.
func (c *controlPlane) restartAPI(t *testing.T, down time.Duration) {
	t.Helper()
	c.api.kill()
	time.Sleep(down)
	c.api.start(t)
	c.awaitAPI(t, 2*time.Minute)
}

// compact removes all old revisions from etcd.
func (c *controlPlane) compact(t *testing.T) {
	t.Helper()
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	c.callEtcd(t, "/v3/kv/range", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("/"))}, &now)
	c.callEtcd(t, "/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
}

// put writes a value of the size into etcd; an error means that etcd is full.
func (c *controlPlane) put(key string, size int) error {
	value := base64.StdEncoding.EncodeToString(make([]byte, size))
	return postEtcd(c.etcdAt, "/v3/kv/put",
		map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(key)), "value": value}, nil)
}

// empty removes the values that put wrote, frees their space, and clears etcd's alarm so that it accepts writes.
func (c *controlPlane) empty(t *testing.T, prefix string) {
	t.Helper()
	encoded := base64.StdEncoding.EncodeToString([]byte(prefix))
	end := base64.StdEncoding.EncodeToString([]byte(prefix + "\xff"))
	c.callEtcd(t, "/v3/kv/deleterange", map[string]any{"key": encoded, "range_end": end}, nil)
	c.compact(t)
	c.callEtcd(t, "/v3/maintenance/defragment", map[string]any{}, nil)
	var raised struct {
		Alarms []struct {
			MemberID string `json:"memberID"`
		} `json:"alarms"`
	}
	c.callEtcd(t, "/v3/maintenance/alarm", map[string]any{"action": "GET", "alarm": "NOSPACE"}, &raised)
	for _, alarm := range raised.Alarms {
		c.callEtcd(t, "/v3/maintenance/alarm",
			map[string]any{"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": alarm.MemberID}, nil)
	}
}

func (c *controlPlane) callEtcd(t *testing.T, path string, in, out any) {
	t.Helper()
	if err := postEtcd(c.etcdAt, path, in, out); err != nil {
		t.Fatal(err)
	}
}

// postEtcd calls etcd's JSON gateway.
func postEtcd(at, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", path, resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

func writeKubeconfig(t *testing.T, path, server string, ca []byte) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: adminToken}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port that is currently unused.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed in the next line
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// get reads a URL; a status other than 200 is an error.
func get(client *http.Client, url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, resp.Status, body)
	}
	return string(body), err
}

// within repeats check until it returns nil.
func within(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
