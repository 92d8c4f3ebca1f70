// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

/** Stays until its input ends. */
public class Idle {
	public static void main(String[] args) throws Exception {
		System.out.println("ready");
		System.in.read();
	}
}
