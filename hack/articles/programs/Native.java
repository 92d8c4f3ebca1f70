// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.ObjectName;
import sun.misc.Unsafe;

/**
 * The program of the story "JVM native memory": many threads allocate and free native memory, as compression, TLS and
 * JNI libraries do, and keep a part of it. The Java heap does not grow; glibc's arenas do.
 *
 * <p>GET /work?mib=600: the threads allocate 600 MiB together and free most of it. GET /trim: malloc_trim, as jcmd
 * System.trim_native_heap does it. GET /stats: sizes in bytes. A first argument is the MiB to allocate at the start.
 */
public class Native {
  static final int THREADS = 16;
  static final int KEPT_PERCENT = 40; // of the blocks, at random: they pin pages of the arenas
  static final Unsafe UNSAFE = unsafe();
  static final ExecutorService POOL = Executors.newFixedThreadPool(THREADS);
  static final List<byte[]> HEAP = new ArrayList<>(); // the live set

  static Unsafe unsafe() {
    try {
      var f = Unsafe.class.getDeclaredField("theUnsafe");
      f.setAccessible(true);
      return (Unsafe) f.get(null);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  public static void main(String[] args) throws Exception {
    for (int i = 0; i < 64; i++) {
      HEAP.add(new byte[1 << 20]);
    }
    var port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
    var server = HttpServer.create(new InetSocketAddress(port), 0);
    server.createContext("/", exchange -> {
      var uri = exchange.getRequestURI();
      var answer = "";
      var status = 200;
      try {
        switch (uri.getPath()) {
          case "/work" -> work(number(uri.getQuery(), 600));
          case "/trim" -> trim();
          case "/stats" -> { }
          default -> status = 404;
        }
        answer = stats();
      } catch (Exception e) {
        status = 500;
        answer = e.toString();
      }
      var bytes = answer.getBytes();
      exchange.sendResponseHeaders(status, bytes.length);
      exchange.getResponseBody().write(bytes);
      exchange.close();
    });
    server.start();
    if (args.length > 0) {
      work(Long.parseLong(args[0]));
    }
  }

  static long number(String query, long fallback) {
    return query == null ? fallback : Long.parseLong(query.substring(query.indexOf('=') + 1));
  }

  /** Allocates blocks of 256 bytes to 64 KiB; the freed ones lie between the kept ones. */
  static void work(long mib) throws Exception {
    var jobs = new ArrayList<Future<?>>();
    for (int t = 0; t < THREADS; t++) {
      var random = new Random(t);
      jobs.add(POOL.submit(() -> {
        var blocks = new ArrayList<Long>();
        for (long left = mib * (1 << 20) / THREADS; left > 0; ) {
          long size = 256L << random.nextInt(9);
          long block = UNSAFE.allocateMemory(size);
          UNSAFE.setMemory(block, size, (byte) 1);
          blocks.add(block);
          left -= size;
        }
        for (long block : blocks) {
          if (random.nextInt(100) >= KEPT_PERCENT) {
            UNSAFE.freeMemory(block);
          }
        }
      }));
    }
    for (var job : jobs) {
      job.get();
    }
  }

  static long gaveBack; // bytes that the last trim released

  /** Trims, and measures RSS around it. The first call loads the 3 MiB of code that such a call needs. */
  static void trim() throws Exception {
    var server = ManagementFactory.getPlatformMBeanServer();
    var commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
    server.invoke(commands, "vmVersion", null, null);
    var before = rss();
    server.invoke(commands, "systemTrimNativeHeap", null, null);
    gaveBack = before - rss();
  }

  static long rss() throws IOException {
    var line = Files.readAllLines(Path.of("/proc/self/status")).stream().filter(l -> l.startsWith("VmRSS")).findFirst();
    return Long.parseLong(line.orElseThrow().replaceAll("\\D", "")) * 1024;
  }

  static String stats() throws IOException {
    var r = Runtime.getRuntime();
    return String.format(Locale.ROOT, "{\"rss\":%d,\"heapUsed\":%d,\"heapCommitted\":%d,\"heapMax\":%d,\"feature\":%d,"
        + "\"gaveBack\":%d}", rss(), r.totalMemory() - r.freeMemory(), r.totalMemory(), r.maxMemory(),
        Runtime.version().feature(), gaveBack);
  }
}
