// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves memfit's admission webhooks on a port that every client in the cluster can reach. Clients may
// be slow, idle or numerous and may send anything, so the server limits connections, body bytes and time. At a limit,
// it closes the oldest connection of the address with the most connections. API servers are always served, because
// their requests take milliseconds. With a client CA, clients need a certificate from this CA.
package server
