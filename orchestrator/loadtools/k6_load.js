// The k6 script of one load: the request of load.json, with the scenario from the arguments.
//
//   SHAPE   the scenario without its rate, as JSON       RATE    iterations a second, or empty
//   TARGET  scheme://address:port, or address:port       OUT     where the report goes
//   TREE    the folder of the proto files
//
// An iteration is one request, which k6 itself reports. Two metrics of the last request of their VU
// are added: body_bytes (by content-length) and no_answer (a reason).

import grpc from 'k6/net/grpc';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const load = JSON.parse(open('./load.json'));
const bodyBytes = new Trend('body_bytes');
const noAnswer = new Counter('no_answer');
// Without this pause, a closed loop would run at full speed while the server does not respond.
const REST_S = __ENV.RATE ? 0 : 0.05;

function scenario() {
  const shape = JSON.parse(__ENV.SHAPE);
  if (__ENV.RATE) {
    // k6 accepts only whole numbers.
    shape.rate = Math.round(Number(__ENV.RATE) * 1000);
    shape.timeUnit = '1000s';
  }
  return shape;
}

export const options = {
  scenarios: { load: scenario() },
  systemTags: ['error', 'error_code', 'proto', 'status', 'vu'],
  discardResponseBodies: true,
  noConnectionReuse: !load.keepalive,
  noVUConnectionReuse: !load.keepalive,
  // Errors are caught below; otherwise k6 would log each failed request.
  throw: true,
};

http.setResponseCallback(null);

const client = load.grpc ? new grpc.Client() : null;
let connected = false;
if (load.grpc && load.grpc.proto) {
  const folders = load.grpc.import_paths.map((path) => `${__ENV.TREE}/${path}`);
  client.load([__ENV.TREE, ...folders], load.grpc.proto);
}

export default function () {
  try {
    if (client) {
      call();
    } else {
      request();
    }
  } catch (error) {
    noAnswer.add(1, { text: `${error.message || error}`.slice(0, 300) });
    sleep(REST_S);
  }
}

function request() {
  const answer = http.request(load.method, __ENV.TARGET + load.path, load.body, {
    headers: load.headers,
    redirects: 0,
    timeout: load.timeout_ms,
  });
  const length = load.method === 'HEAD' ? 0 : answer.headers['Content-Length'];
  if (length !== undefined) {
    bodyBytes.add(Number(length));
  }
}

function call() {
  if (!connected) {
    client.connect(__ENV.TARGET, {
      plaintext: !load.tls,
      reflect: !load.grpc.proto,
      timeout: load.connect_timeout_ms,
    });
    connected = true;
  }
  const answer = client.invoke(load.grpc.method, load.grpc.data, {
    metadata: load.headers,
    timeout: load.timeout_ms,
    discardResponseMessage: true,
  });
  if (answer.status !== grpc.StatusOK) {
    const text = answer.error ? answer.error.message : '';
    noAnswer.add(1, { text: `${text}`.slice(0, 300) });
  }
}

export function handleSummary(data) {
  const said = { asked: { ...scenario(), rate: Number(__ENV.RATE) || null }, ...data };
  return { [__ENV.OUT]: JSON.stringify(said) };
}
