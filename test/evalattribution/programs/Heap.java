// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;

/** Fills its heap, drops most of it, and does the same with native memory. Answers "used" and "gc" with bytes. */
public class Heap {
	static List<byte[]> kept = new ArrayList<>();

	public static void main(String[] args) throws Exception {
		List<byte[]> all = new ArrayList<>();
		for (int i = 0; i < 40_000; i++) {
			byte[] b = new byte[10_000];
			all.add(b);
			if (i % 20 == 0) {
				kept.add(b);
			}
		}
		all = null;
		Field f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
		f.setAccessible(true);
		sun.misc.Unsafe unsafe = (sun.misc.Unsafe) f.get(null);
		Thread[] threads = new Thread[8];
		for (int t = 0; t < threads.length; t++) {
			threads[t] = new Thread(() -> nativeBurst(unsafe));
			threads[t].start();
		}
		for (Thread t : threads) {
			t.join();
		}
		System.out.println("ready");
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		Runtime r = Runtime.getRuntime();
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			if (line.equals("gc")) {
				System.gc();
				Thread.sleep(2000); // G1 uncommits concurrently
			}
			System.out.println((r.totalMemory() - r.freeMemory()) + " " + r.totalMemory() + " " + r.maxMemory());
		}
	}

	static void nativeBurst(sun.misc.Unsafe unsafe) {
		long[] blocks = new long[20_000];
		for (int i = 0; i < blocks.length; i++) {
			long size = 64 + (i * 37L) % 8000;
			blocks[i] = unsafe.allocateMemory(size);
			unsafe.setMemory(blocks[i], size, (byte) 1);
		}
		for (int i = 0; i < blocks.length; i++) {
			if (i % 50 != 0) {
				unsafe.freeMemory(blocks[i]);
			}
		}
	}
}
