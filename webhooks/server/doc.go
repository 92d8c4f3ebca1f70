// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves admission webhooks on a port that everybody in the cluster reaches. Whoever connects may be
// slow, idle, many, or send whatever he likes: what is kept for all of them together is bounded in connections, bytes
// and time, and what is given up first is the oldest of whoever holds most, so that an API server, whose requests take
// milliseconds, is served meanwhile. What was refused is counted. With a client CA, only who has a certificate of it
// comes beyond the handshake.
package server
