// Answers /hello, /burn, /sleep and /mb with Node's own server: node app.js BIND PORT.
"use strict";

const http = require("node:http");
const work = require("../../work/work.js");

const ROUTES = {
  "/hello": () => "Hello, World!",
  "/burn": () => work.burn(work.cpuOfNode).then(() => "burned"),
  "/sleep": () => work.sleep().then(() => "slept"),
  "/mb": () => work.MEGABYTE,
};

async function answer(request, response) {
  const route = ROUTES[request.url];
  const body = route ? await route() : "not here";
  response.writeHead(route ? 200 : 404, {
    "Content-Type": "text/plain",
    "Content-Length": body.length,
  });
  response.end(body);
}

http.createServer(answer).listen({ ...work.address(), backlog: 1024 });
