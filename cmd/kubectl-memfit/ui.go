// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/htmlreport"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/webui"
)

const uiLong = `Show the page of "kubectl memfit report" in a browser, live: it is read again every half minute while a
browser shows it, and more rarely where reading takes seconds. When the API server does not answer, the page remains and
shows its age.

The page is served on 127.0.0.1 of this machine until you press Ctrl+C. It is read with your kubeconfig, and its
address, which is printed, holds a token: every process that has the address can read what you may read. Nothing is written to the
cluster.`

const uiExample = `  kubectl memfit ui -n shop

  # On another machine: the same port on both sides, then open the printed address here
  ssh -t -L 8642:127.0.0.1:8642 bastion kubectl memfit ui -A --port 8642`

// stopTimeout is how long a response may still take when the command ends.
const stopTimeout = 2 * time.Second

func uiCommand() *cobra.Command {
	var port uint16
	cmd := &cobra.Command{
		Use:   "ui [-n NAMESPACE | -A] [--port PORT]",
		Short: "Show the page of report in a browser, live",
		Long:  uiLong, Example: uiExample, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	r := reading(cmd, allNamespaces)
	cmd.Flags().Uint16Var(&port, "port", 0, "the port of 127.0.0.1 to serve on; 0: a free one")
	p := priceFlags(cmd)
	r.runs(func(c *call) error {
		if err := p.check(); err != nil {
			return err
		}
		return ui(c, port, p)
	})
	return cmd
}

// ui serves the page of one cluster: when the kubeconfig's context changes, the page remains with the cluster it names.
func ui(c *call, port uint16, p *price) error {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("choose another --port, or leave it out for a free one: %w", err)
	}
	defer listener.Close()
	address := listener.Addr().(*net.TCPAddr)
	handler, err := webui.New(ctx, address.Port, func(ctx context.Context) (*htmlreport.Input, error) {
		return pageInput(ctx, c.site, p)
	}, time.Now)
	if err != nil {
		return err
	}
	c.note("Open this address, and keep it to yourself; press Ctrl+C to stop.")
	fmt.Fprintf(c.OutOrStdout(), "http://%s%s\n", address, handler.Path())
	return serve(ctx, listener, handler)
}

// serve answers until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the page: %w", err)
	case <-ctx.Done():
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if errors.Is(server.Shutdown(patient), context.DeadlineExceeded) {
		_ = server.Close() // a page that waits for the API server
	}
	return nil
}
