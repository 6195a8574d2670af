// Orders are accepted or refused. The limits are a file of this folder, the working directory.
const { readFileSync } = require("node:fs");
const { createServer } = require("node:http");
const { isOrder } = require("@shop/orders");

const limits = JSON.parse(readFileSync("limits.json", "utf8"));

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const server = createServer((request, response) => {
  if (request.method === "GET") {
    send(response, 200, { ready: true });
    return;
  }
  let text = "";
  request.on("data", (part) => {
    text += part;
    if (text.length > limits.bytes) request.destroy();
  });
  request.on("end", () => {
    const accepted = isOrder(text);
    send(response, accepted ? 201 : 400, { accepted });
  });
});
server.listen(Number(process.env.PORT), process.env.HOST);
