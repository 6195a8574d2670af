// Answers /hello, /burn, /sleep and /mb with Fastify: node app.js BIND PORT.
"use strict";

const fastify = require("fastify");
const work = require("../../work/work.js");

const app = fastify();
app.addHook("onRequest", async (request, reply) => {
  reply.type("text/plain");
});
app.setNotFoundHandler(async (request, reply) => {
  reply.code(404);
  return "not here";
});
app.get("/hello", async () => "Hello, World!");
app.get("/burn", async () => {
  await work.burn(work.cpuOfNode);
  return "burned";
});
app.get("/sleep", async () => {
  await work.sleep();
  return "slept";
});
app.get("/mb", async () => work.MEGABYTE);

app.listen({ ...work.address(), backlog: 1024 }).catch((problem) => {
  console.error(problem);
  process.exit(1);
});
