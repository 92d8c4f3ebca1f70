// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * One JVM with a memory habit: java Mem MODE key=value... It runs until it is killed.
 * Sizes are MiB, times are seconds of the recording; test/recordings/README.md says what each mode stands for.
 */
public class Mem {
  static final Map<String, String> OPT = new HashMap<>();
  static final long STARTED = System.nanoTime();
  static final Random RANDOM = new Random();
  static final List<Object> KEPT = new ArrayList<>();
  static Object live;

  static double num(String name, double fallback) {
    return OPT.containsKey(name) ? Double.parseDouble(OPT.get(name)) : fallback;
  }

  static double jitter(double x) {
    return x * (0.6 + 0.8 * RANDOM.nextDouble());
  }

  static double seconds() {
    return (System.nanoTime() - STARTED) / 1e9;
  }

  static List<byte[]> objects(double mib) {
    List<byte[]> out = new ArrayList<>();
    for (int i = 0; i < mib * 2048; i++) {
      out.add(new byte[496]);
    }
    return out;
  }

  static ByteBuffer direct(double mib) {
    ByteBuffer b = ByteBuffer.allocateDirect((int) (mib * (1 << 20)));
    for (int i = 0; i < b.capacity(); i += 4096) {
      b.put(i, (byte) 1);
    }
    return b;
  }

  static void pause() throws InterruptedException {
    Thread.sleep(500);
  }

  static void steady() throws InterruptedException {
    for (; ; pause()) {
      objects(jitter(num("garbage", 2)));
    }
  }

  static void warm() throws InterruptedException {
    double full = 0;
    for (; ; pause()) {
      double want = num("cache", 60) * (1 - Math.exp(-seconds() / num("tau", 120)));
      for (; full < want; full += 0.25) {
        KEPT.add(direct(0.25));
      }
      objects(jitter(1));
    }
  }

  static void burst() throws InterruptedException {
    double due = num("period", 90);
    for (; ; pause()) {
      if (seconds() > due) {
        List<Object> held = new ArrayList<>();
        for (int i = 0; i < jitter(num("size", 80)) / 4; i++) {
          held.add(direct(4));
        }
        Thread.sleep((long) (num("hold", 8) * 1000));
        held = null;
        System.gc();
        due = seconds() + jitter(num("period", 90));
      }
      objects(jitter(1));
    }
  }

  /** Each report makes the heap grow, and the collector keeps what it committed. */
  static void retain() throws InterruptedException {
    String[] at = OPT.getOrDefault("at", "240,430").split(",");
    for (int next = 0; ; pause()) {
      if (next < at.length && seconds() > Double.parseDouble(at[next])) {
        next++;
        List<byte[]> report = objects(num("size", 60) * next);
        KEPT.add(report.get(report.size() - 1));
      }
      objects(jitter(0.5));
    }
  }

  static void leak() throws InterruptedException {
    for (; ; pause()) {
      objects(jitter(num("garbage", 2)));
      KEPT.add(objects(jitter(num("rate", 0.15)) / 2));
    }
  }

  /** Buffers outside of the heap that are never released. */
  static void leaknative() throws InterruptedException {
    for (; ; pause()) {
      objects(jitter(num("garbage", 2)));
      KEPT.add(direct(jitter(num("rate", 0.15)) / 2));
    }
  }

  /** Garbage that survives young collections: the heap grows to its cap before the old generation is collected. */
  static void fill() throws InterruptedException {
    Object[] ring = new Object[(int) num("ring", 60)];
    for (int at = 0; ; pause()) {
      ring[at++ % ring.length] = objects(num("garbage", 2));
    }
  }

  public static void main(String[] args) throws Exception {
    for (int i = 1; i < args.length; i++) {
      String[] kv = args[i].split("=", 2);
      OPT.put(kv[0], kv[1]);
    }
    live = objects(num("live", 20));
    Mem.class.getDeclaredMethod(args[0]).invoke(null);
  }
}
