// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves admission webhooks on a port that every client in the cluster reaches. Clients may be slow,
// idle or many, and may send anything, so connections, bytes and time are bounded over all of them. The oldest
// connection of the address with the most is closed first, so that an API server, whose requests take milliseconds, is
// always served. Refusals are counted. With a client CA, only clients with its certificate get beyond the handshake.
package server
