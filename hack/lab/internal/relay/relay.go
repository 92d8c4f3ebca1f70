// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay copies TCP connections from one place to another: from the machine's loopback into the lab's namespace.
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

// Dialer opens the far side of a connection.
type Dialer func(ctx context.Context) (net.Conn, error)

// dialTimeout is short: both ends are on this machine, so what does not answer at once is not there.
const dialTimeout = 5 * time.Second

// Serve accepts connections until ctx ends and copies each to a new one from dial. A far side that does not answer
// closes the near side and is reported on stderr, which is the daemon's log; the relay goes on.
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
			time.Sleep(10 * time.Millisecond) // out of file descriptors, most likely: wait for some to be closed
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
		return fmt.Errorf("connecting %s to the far side: %w", near.RemoteAddr(), err)
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

// copyHalf copies one direction and passes the end of the stream on, so that a half-closed connection stays
// half-closed: `kubectl exec` with piped input depends on it.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from) // an error is the other side's end, and ends this one too
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
		return
	}
	_ = to.Close()
}
