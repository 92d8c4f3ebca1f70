// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func TestServeCopiesBothWaysAndKeepsHalfClosedConnections(t *testing.T) {
	echo := listen(t)
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		data, _ := io.ReadAll(conn) // returns when the other side has closed its half
		_, _ = conn.Write(append(data, '!'))
	}()
	near := serve(t, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", echo.Addr().String())
	})

	if _, err := near.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := near.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(near); err != nil || string(got) != "hello!" {
		t.Errorf("got %q, %v; want %q", got, err, "hello!")
	}
}

func TestFailedDialClosesTheConnection(t *testing.T) {
	near := serve(t, func(context.Context) (net.Conn, error) { return nil, errors.New("refused") })
	if got, err := io.ReadAll(near); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v; want the end of the stream", got, err)
	}
}

// serve starts a relay and returns a connection to it.
func serve(t *testing.T, dial Dialer) net.Conn {
	t.Helper()
	listener := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, dial) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return conn
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
