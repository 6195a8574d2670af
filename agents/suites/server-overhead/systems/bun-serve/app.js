// Answers /hello, /burn, /sleep and /mb with Bun's own server: bun app.js BIND PORT.
"use strict";

const { dlopen, ptr } = require("bun:ffi");
const work = require("../../work/work.js");

const CLOCK_THREAD_CPUTIME_ID = 3;
const libc = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
const time = new BigInt64Array(2);

function threadCpu() {
  libc.symbols.clock_gettime(CLOCK_THREAD_CPUTIME_ID, ptr(time));
  return Number(time[0]) * 1e3 + Number(time[1]) / 1e6;
}

const HEADERS = { "Content-Type": "text/plain" };
const text = (body) => new Response(body, { headers: HEADERS });
const { host, port } = work.address();

Bun.serve({
  hostname: host,
  port,
  routes: {
    "/hello": () => text("Hello, World!"),
    "/burn": () => work.burn(threadCpu).then(() => text("burned")),
    "/sleep": () => work.sleep().then(() => text("slept")),
    "/mb": () => text(work.MEGABYTE),
  },
  fetch: () => new Response("not here", { status: 404 }),
});
