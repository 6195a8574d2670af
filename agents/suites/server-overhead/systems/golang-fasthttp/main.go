// Answers /hello, /burn, /sleep and /mb with fasthttp: server BIND PORT.
package main

import (
	"log"

	"github.com/valyala/fasthttp"

	"suite.test/work"
)

func answer(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain")
	switch string(ctx.Path()) {
	case "/hello":
		ctx.SetBodyString("Hello, World!")
	case "/burn":
		work.Burn()
		ctx.SetBodyString("burned")
	case "/sleep":
		work.Sleep()
		ctx.SetBodyString("slept")
	case "/mb":
		ctx.Response.SetBodyRaw(work.Megabyte)
	default:
		ctx.Error("not here", fasthttp.StatusNotFound)
	}
}

func main() {
	log.Fatal(fasthttp.ListenAndServe(work.Address(), answer))
}
