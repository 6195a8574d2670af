// The work of a request, in steps between which other requests run. Times are milliseconds.
"use strict";

const STEPS = 20;
const STEP = 7.5 / STEPS;

exports.MEGABYTE = Buffer.alloc(1_000_000, "x");

/** Where to listen, from the arguments BIND PORT. */
exports.address = () => ({ host: process.argv[2], port: Number(process.argv[3]) });

/** Uses 7.5 ms of its thread's CPU time, by the clock `cpu`. */
exports.burn = async (cpu) => {
  for (let step = 0; step < STEPS; step++) {
    const end = cpu() + STEP;
    while (cpu() < end);
    await new Promise((resume) => setImmediate(resume));
  }
};

/** Ends each step on time, so that timers of whole milliseconds do not add up. */
exports.sleep = async () => {
  const start = performance.now();
  for (let step = 1; step <= STEPS; step++) {
    const left = start + step * STEP - performance.now();
    if (left > 0) await new Promise((resume) => setTimeout(resume, left));
  }
};

/** The CPU time of this thread; of the whole process where Node is older than 23.9. */
exports.cpuOfNode = () => {
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage).call(process);
  return (user + system) / 1000;
};
