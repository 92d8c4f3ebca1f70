// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"fmt"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/process"
)

// daemon returns the spec of a program that runs inside the namespace and logs to its own file.
func (n *Node) daemon(name string, args ...string) process.Spec {
	return process.Spec{
		Name: name, Path: n.binary(name), Args: args,
		// containerd finds its shim on the PATH, and the kubelet finds mount helpers.
		Env:   []string{"PATH=" + n.Bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		NetNS: n.Layout.NetNS(),
		Log:   n.Layout.Log(name),
	}
}

func (n *Node) etcd() process.Spec {
	const client = "http://127.0.0.1:2379" // the namespace's loopback, which the machine cannot reach
	return n.daemon("etcd",
		"--name=lab",
		"--data-dir="+n.data("etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls=http://127.0.0.1:2380",
		"--unsafe-no-fsync", // after a power loss, the lab starts without the old data
	)
}

func (n *Node) apiServer() process.Spec {
	return n.daemon("kube-apiserver",
		"--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address="+layout.NodeIP,
		"--bind-address=0.0.0.0",
		fmt.Sprintf("--secure-port=%d", layout.APIPort),
		"--service-cluster-ip-range="+layout.ServiceCIDR,
		"--client-ca-file="+n.pki("ca.crt"),
		"--tls-cert-file="+n.pki("apiserver.crt"), "--tls-private-key-file="+n.pki("apiserver.key"),
		"--kubelet-certificate-authority="+n.pki("ca.crt"),
		"--kubelet-client-certificate="+n.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+n.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP", // there is no DNS for host names
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+n.pki("service-accounts.crt"),
		"--service-account-signing-key-file="+n.pki("service-accounts.key"),
		"--requestheader-client-ca-file="+n.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+n.pki("front-proxy-client.crt"),
		"--proxy-client-key-file="+n.pki("front-proxy-client.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-aggregator-routing=true", // without kube-proxy, reach webhook Services by endpoint addresses
		"--allow-privileged=true",          // memfit's agent mounts host paths
		"--profiling=false",
	)
}

func (n *Node) controllerManager() process.Spec {
	return n.daemon("kube-controller-manager",
		"--kubeconfig="+n.config("controller-manager.kubeconfig"),
		"--authentication-kubeconfig="+n.config("controller-manager.kubeconfig"),
		"--authorization-kubeconfig="+n.config("controller-manager.kubeconfig"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+n.pki("service-accounts.key"),
		"--root-ca-file="+n.pki("ca.crt"),
		"--cluster-signing-cert-file="+n.pki("ca.crt"), "--cluster-signing-key-file="+n.pki("ca.key"),
		"--leader-elect=false", // there is only one
	)
}

func (n *Node) scheduler() process.Spec {
	return n.daemon("kube-scheduler",
		"--kubeconfig="+n.config("scheduler.kubeconfig"),
		"--authentication-kubeconfig="+n.config("scheduler.kubeconfig"),
		"--authorization-kubeconfig="+n.config("scheduler.kubeconfig"),
		"--leader-elect=false",
	)
}

func (n *Node) containerd() process.Spec {
	return n.daemon("containerd", "--config="+n.config("containerd.toml"))
}

func (n *Node) kubelet() process.Spec {
	spec := n.daemon("kubelet",
		"--config="+n.config("kubelet.yaml"),
		"--kubeconfig="+n.config("kubelet.kubeconfig"),
		"--root-dir="+n.data("kubelet"),
		"--cert-dir="+n.data("kubelet/pki"), // used only if the kubelet's configuration is changed to create certificates
		"--hostname-override="+layout.NodeName,
		"--node-ip="+layout.NodeIP,
		"--v=2",
	)
	// modules/kubernetes/main.go passes it to cAdvisor, whose default is the machine's own containerd.
	spec.Env = append(spec.Env, "CONTAINERD_ADDRESS="+n.Layout.ContainerdSocket())
	return spec
}

func (n *Node) certManager() process.Spec {
	return n.daemon(
		"cert-manager", "--kubeconfig="+n.config("cert-manager.kubeconfig"), "--health-address="+certManagerHealth,
	)
}

// forwarder runs outside the namespace and forwards connections from the machine to target. Its program is a copy of
// this one.
func (n *Node) forwarder(name, listen, target string) process.Spec {
	return process.Spec{
		Name: name, Path: n.data("bin/lab"),
		Args: []string{"serve-forward", "--netns=" + n.Layout.NetNS(), "--listen=" + listen, "--target=" + target},
		Log:  n.Layout.Log(name),
	}
}
