// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay forwards TCP connections from the machine's loopback into the lab's network namespace.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Dialer opens the target's side of a connection.
type Dialer func(ctx context.Context) (net.Conn, error)

// dialTimeout is short, because the target is on this machine.
const dialTimeout = 5 * time.Second

// Serve accepts connections until ctx ends and forwards each to a new one from dial. If dial fails, Serve closes the
// accepted connection, prints the error to stderr, which is the daemon's log, and continues.
func Serve(ctx context.Context, listener net.Listener, dial Dialer) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		near, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			time.Sleep(10 * time.Millisecond) // probably out of file descriptors: wait until some are closed
			continue
		}
		open.Go(func() {
			if err := connect(ctx, near, dial); err != nil {
				fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), err)
			}
		})
	}
}

func connect(ctx context.Context, near net.Conn, dial Dialer) error {
	defer near.Close()
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	far, err := dial(dialCtx)
	cancel()
	if err != nil {
		return fmt.Errorf("connecting %s to the target: %w", near.RemoteAddr(), err)
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(far, near) })
	both.Go(func() { copyHalf(near, far) })
	both.Wait()
	return nil
}

// copyHalf copies one direction and then closes it in the target, so that half-closed connections remain half-closed:
// `kubectl exec` with piped input depends on it.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from) // an error ends this direction, as the end of the stream does
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
		return
	}
	_ = to.Close()
}
