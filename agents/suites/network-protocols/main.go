// A server of one body over one protocol with TLS: HTTP/1.1, HTTP/2 or HTTP/3.
//
//	server --bind 127.0.0.1 --port 8443 --protocol h3 --bytes 65536 --cert cert.pem --key key.pem
package main

import (
	"bytes"
	"flag"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// oha waits at the end until a connection over HTTP/3 was idle for this long, by default 30 s. Lost
// packets must not end a connection, so it is longer than several timeouts of a slow network.
const idleQUIC = 5 * time.Second

func main() {
	bind := flag.String("bind", "127.0.0.1", "address to listen on")
	port := flag.String("port", "8443", "port, of TCP and of UDP")
	protocol := flag.String("protocol", "h1", "h1, h2 or h3")
	size := flag.Int("bytes", 65536, "size of the body")
	cert := flag.String("cert", "", "certificate of the server")
	key := flag.String("key", "", "its key")
	flag.Parse()

	address, handler := net.JoinHostPort(*bind, *port), answerWith(*size)
	tcp := &http.Server{Addr: address, Handler: handler, Protocols: new(http.Protocols)}
	failed := make(chan error, 2)
	switch *protocol {
	case "h1":
		tcp.Protocols.SetHTTP1(true)
	case "h2":
		tcp.Protocols.SetHTTP2(true)
	case "h3":
		// Clients try TCP first.
		tcp.Protocols.SetHTTP1(true)
		server := &http3.Server{
			Addr:       address,
			Handler:    handler,
			QUICConfig: &quic.Config{MaxIdleTimeout: idleQUIC},
		}
		go func() { failed <- server.ListenAndServeTLS(*cert, *key) }()
	default:
		log.Fatalf("%q is no protocol: h1, h2 or h3", *protocol)
	}
	go func() { failed <- tcp.ListenAndServeTLS(*cert, *key) }()
	log.Fatal(<-failed)
}

// answerWith returns a handler of /body, with that many bytes, and of /health.
func answerWith(size int) http.Handler {
	body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
	mux := http.NewServeMux()
	mux.HandleFunc("GET /body", func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Length", strconv.Itoa(size))
		answer.Write(body)
	})
	mux.HandleFunc("GET /health", func(answer http.ResponseWriter, _ *http.Request) {
		answer.Write([]byte("ok"))
	})
	return mux
}
