// A JVM that works in batches on many threads: each batch compresses a few megabytes per thread, so glibc opens several
// malloc arenas and keeps what the batch freed. Memory outside the Java heap is what -XX:TrimNativeHeapInterval gives back.
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.zip.Deflater;

public class Batches {
    static final int THREADS = 16;
    static final int ROUNDS = 40;

    public static void main(String[] args) throws Exception {
        for (int batch = 1; ; batch++) {
            CountDownLatch done = new CountDownLatch(THREADS);
            for (int t = 0; t < THREADS; t++) {
                final int seed = t;
                new Thread(() -> { compress(new Random(seed)); done.countDown(); }).start();
            }
            done.await();
            System.out.println("batch " + batch + " done, heap max " + Runtime.getRuntime().maxMemory() / (1 << 20) + " MiB");
            Thread.sleep(15_000);
        }
    }

    static void compress(Random random) {
        byte[] in = new byte[64 * 1024];
        byte[] out = new byte[64 * 1024];
        for (int round = 0; round < ROUNDS; round++) {
            random.nextBytes(in);
            Deflater deflater = new Deflater();
            deflater.setInput(in);
            deflater.finish();
            while (!deflater.finished()) {
                deflater.deflate(out);
            }
            deflater.end();
        }
    }
}
