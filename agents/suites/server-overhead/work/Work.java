import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/** What a request costs, in steps between which others have their turn. Times are nanoseconds. */
final class Work {
    static final int STEPS = 20;
    static final long STEP = 7_500_000 / STEPS;
    static final byte[] MEGABYTE = new byte[1_000_000];

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    static {
        Arrays.fill(MEGABYTE, (byte) 'x');
    }

    private Work() {}

    /** One step of the CPU time of this thread. */
    static void burnStep() {
        long end = THREADS.getCurrentThreadCpuTime() + STEP;
        while (THREADS.getCurrentThreadCpuTime() < end) {
            Thread.onSpinWait();
        }
    }

    /** How long until the end of this step, of a request that began at `start`; 0 when late. */
    static long left(long start, int step) {
        return Math.max(0, start + step * STEP - System.nanoTime());
    }
}
