"""HTTP/2 over TLS for a single client, HTTP/1.1 under load; started by the tests' own Python.

Under load means more than one open connection. Unless `character`, a file next to it, contains
`liar`, all clients get HTTP/2.
"""

import argparse
import contextlib
import socketserver
import ssl
import threading
import time
from pathlib import Path

import h2.config
import h2.connection
import h2.events

BODY = b"Hello, World!"
#: Long enough for the other connections of a load to arrive.
_LOOK_ROUND_S = 0.2


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
    open = 0
    lock = threading.Lock()

    def __init__(self, port, cert, key, lies):
        super().__init__(("127.0.0.1", port), Connection)
        self.tls, self.old = (_tls(cert, key, alpn) for alpn in ("h2", "http/1.1"))
        if lies:
            self.tls.sni_callback = self._look_round

    def _look_round(self, sock, _name, _context):
        time.sleep(_LOOK_ROUND_S)
        if self.open > 1:
            sock.context = self.old


class Connection(socketserver.BaseRequestHandler):
    def handle(self):
        with self.server.lock:
            self.server.open += 1
        # A client may close the connection at any time.
        with contextlib.suppress(OSError), self._shaken_hands() as sock:
            speak = _http2 if sock.selected_alpn_protocol() == "h2" else _http1
            speak(sock)

    def _shaken_hands(self):
        return self.server.tls.wrap_socket(self.request, server_side=True)

    def finish(self):
        with self.server.lock:
            self.server.open -= 1


def _tls(cert, key, alpn):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols([alpn])
    return context


def _http1(sock):
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
    buffer = b""
    while data := sock.recv(1 << 16):
        buffer += data
        while b"\r\n\r\n" in buffer:
            _, _, buffer = buffer.partition(b"\r\n\r\n")
            sock.sendall(answer)


def _http2(sock):
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    sock.sendall(connection.data_to_send())
    headers = [(":status", "200"), ("content-length", str(len(BODY)))]
    while data := sock.recv(1 << 16):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                connection.send_headers(event.stream_id, headers)
                connection.send_data(event.stream_id, BODY, end_stream=True)
        sock.sendall(connection.data_to_send())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    given = parser.parse_args()
    lies = Path("character").read_text().strip() == "liar"
    with Server(given.port, given.cert, given.key, lies) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
