// A server that answers "Hello, World!" over HTTP/1.1 and HTTP/2 without TLS, and a gRPC call.
//
//	server -port 8080 [-bind 127.0.0.1] [-work 0] [-delays uniform]
//
// work is the number of SHA-256 hashes that each answer costs on top of what any server does: enough
// of them, and the server and not the load tool is the limit. delays is a distribution of known
// delays (delays.go): SIGTERM then prints the delays that the answers really had.
package main

import (
	"crypto/sha256"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
)

var (
	hello = []byte("Hello, World!")
	// A message of gRPC: not compressed, 7 bytes long; field 1 is the text "Hello".
	reply = []byte("\x00\x00\x00\x00\x07\x0a\x05Hello")
)

func main() {
	port := flag.Int("port", 0, "where to listen")
	bind := flag.String("bind", "127.0.0.1", "the address to listen on")
	work := flag.Int("work", 0, "hashes an answer")
	name := flag.String("delays", "", "constant, uniform, bimodal or pauses")
	flag.Parse()
	delays := new(delays)
	if *name != "" {
		if delays.next = distributions[*name]; delays.next == nil {
			log.Fatalf("no delays %q", *name)
		}
		delays.printAtEnd()
	}

	spoken := new(http.Protocols)
	spoken.SetHTTP1(true)
	spoken.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Addr:      net.JoinHostPort(*bind, strconv.Itoa(*port)),
		Handler:   routes(*work, delays),
		Protocols: spoken,
	}
	log.Fatal(server.ListenAndServe())
}

func routes(work int, delays *delays) http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("GET /hello", func(answer http.ResponseWriter, _ *http.Request) {
		defer delays.wait()()
		toil(work)
		answer.Header().Set("Content-Type", "text/plain; charset=utf-8")
		answer.Write(hello)
	})
	routes.HandleFunc("POST /helloworld.Greeter/SayHello", func(answer http.ResponseWriter, asked *http.Request) {
		io.Copy(io.Discard, asked.Body)
		defer delays.wait()()
		toil(work)
		answer.Header().Set("Content-Type", "application/grpc")
		answer.Header().Set("Trailer", "Grpc-Status")
		answer.Write(reply)
		answer.Header().Set("Grpc-Status", "0")
	})
	return routes
}

func toil(rounds int) {
	digest := sha256.Sum256(hello)
	for range rounds {
		digest = sha256.Sum256(digest[:])
	}
}
