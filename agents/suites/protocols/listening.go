package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// oha waits at the end until a connection over HTTP/3 was idle for this long, by default 30 s.
const idleQUIC = 2 * time.Second

// Listening is the address and protocol of a server.
type Listening struct {
	Bind, Port, Protocol, Cert, Key string
}

// Serve starts to listen; errors, now or later, are sent to `failed`.
//
// HTTP/3 also listens on TCP at the same port, which clients try first.
func (at Listening) Serve(handler http.Handler, failed chan<- error) {
	address := net.JoinHostPort(at.Bind, at.Port)
	tcp := &http.Server{Addr: address, Handler: handler, Protocols: new(http.Protocols)}
	switch at.Protocol {
	case "h1":
		tcp.Protocols.SetHTTP1(true)
		go func() { failed <- tcp.ListenAndServe() }()
	case "h2":
		tcp.Protocols.SetUnencryptedHTTP2(true)
		go func() { failed <- tcp.ListenAndServe() }()
	case "h3":
		server := &http3.Server{
			Addr:       address,
			Handler:    handler,
			QUICConfig: &quic.Config{MaxIdleTimeout: idleQUIC},
		}
		tcp.Protocols.SetHTTP1(true)
		go func() { failed <- tcp.ListenAndServeTLS(at.Cert, at.Key) }()
		go func() { failed <- server.ListenAndServeTLS(at.Cert, at.Key) }()
	default:
		failed <- fmt.Errorf("%q is no protocol: h1, h2 or h3", at.Protocol)
	}
}
