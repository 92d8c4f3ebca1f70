// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import javax.management.ObjectName;

/**
 * The Go article's program (hack/articles/programs/sales) in Java: a live set (its users), of which requests replace
 * some, and requests that make garbage. Answers "load MILLISECONDS" with what it did since it started: requests, and
 * the processor time of the process and of its collector by the JVM, in nanoseconds.
 */
public class Sales {
	static final class User {
		final String id, name, email;
		final String[] roles;
		final byte[] settings = new byte[240];

		User(int i) {
			id = String.format("45b5fbd3-755f-4379-%012d", i);
			name = "User Gopher " + i;
			email = i + "@example.com";
			roles = new String[] {"USER", "R" + i % 7};
		}
	}

	static User[] users;
	static int replaced; // users that a request replaces
	static volatile long seen;

	static final com.sun.management.OperatingSystemMXBean OS =
		(com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

	public static void main(String[] args) throws Exception {
		users = new User[Integer.parseInt(args[0])];
		replaced = Integer.parseInt(args[1]);
		for (int i = 0; i < users.length; i++) {
			users[i] = new User(i);
		}
		System.out.println("ready");
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		AtomicInteger answered = new AtomicInteger();
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			load(Long.parseLong(line.split(" ")[1]) * 1_000_000, answered);
			System.out.println(answered.get() + " " + OS.getProcessCpuTime() + " " + collector());
		}
	}

	static void load(long nanoseconds, AtomicInteger answered) throws Exception {
		long until = OS.getProcessCpuTime() + nanoseconds;
		Thread[] threads = new Thread[4];
		for (int t = 0; t < threads.length; t++) {
			threads[t] = new Thread(() -> {
				while (OS.getProcessCpuTime() < until) {
					seen += request(answered.incrementAndGet());
				}
			});
			threads[t].start();
		}
		for (Thread t : threads) {
			t.join();
		}
	}

	static long request(int n) {
		for (int i = 0; i < replaced; i++) {
			int at = (int) ((n * 7919L + i * 104729L) % users.length);
			users[at] = new User(at);
		}
		List<Map<String, Object>> page = new ArrayList<>(400);
		for (int i = 0; i < 400; i++) {
			User u = users[(int) ((n * 131L + i * 977L) % users.length)];
			Map<String, Object> row = new HashMap<>();
			row.put("id", new StringBuilder(u.id).toString());
			row.put("name", new StringBuilder(u.name).toString());
			row.put("email", u.email.toUpperCase());
			page.add(row);
		}
		StringBuilder text = new StringBuilder(448 << 10); // a response buffer, larger than needed
		for (Map<String, Object> row : page) {
			text.append('{');
			for (Map.Entry<String, Object> e : row.entrySet()) {
				text.append('"').append(e.getKey()).append("\":\"").append(e.getValue()).append("\",");
			}
			text.append("},");
		}
		CRC32 sum = new CRC32();
		sum.update(text.toString().getBytes(StandardCharsets.UTF_8));
		return sum.getValue();
	}

	static final Pattern COLLECTOR = Pattern.compile("(?m)^\"(?:VM Thread|GC Thread|G1 )[^\"]*\".*? cpu=([0-9.]+)ms");

	/** Processor time of the collector's threads, as the JVM prints it, in nanoseconds. */
	static long collector() throws Exception {
		String all = (String) ManagementFactory.getPlatformMBeanServer().invoke(
			new ObjectName("com.sun.management:type=DiagnosticCommand"), "threadPrint", new Object[] {new String[0]},
			new String[] {String[].class.getName()});
		double milliseconds = 0;
		for (Matcher m = COLLECTOR.matcher(all); m.find();) {
			milliseconds += Double.parseDouble(m.group(1));
		}
		return (long) (milliseconds * 1e6);
	}
}
