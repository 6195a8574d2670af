//! The work of a request, in steps between which other requests run.

use std::{env, time::Duration};

use tokio::{
    task::yield_now,
    time::{sleep_until, Instant},
};

const STEPS: u32 = 20;
const STEP: Duration = Duration::from_micros(7_500 / STEPS as u64);

/// The body of /mb.
pub static MEGABYTE: [u8; 1_000_000] = [b'x'; 1_000_000];

/// Where to listen, from the arguments BIND PORT.
pub fn address() -> (String, u16) {
    let mut words = env::args().skip(1);
    let mut word = || words.next().expect("BIND PORT");
    (word(), word().parse().expect("a port"))
}

/// Uses 7.5 ms of its thread's CPU time.
pub async fn burn() {
    for _ in 0..STEPS {
        let end = thread_cpu() + STEP;
        while thread_cpu() < end {}
        yield_now().await;
    }
}

/// Ends each step on time, so that timers of whole milliseconds do not add up.
pub async fn sleep() {
    let start = Instant::now();
    for step in 1..=STEPS {
        sleep_until(start + STEP * step).await;
    }
}

fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to `time` and nowhere else.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
