// Answers /hello, /burn, /sleep and /mb with net/http: server BIND PORT.
package main

import (
	"log"
	"net/http"
	"strconv"

	"suite.test/work"
)

func answer(body []byte, first func()) http.HandlerFunc {
	length := strconv.Itoa(len(body))
	return func(response http.ResponseWriter, _ *http.Request) {
		first()
		response.Header().Set("Content-Type", "text/plain")
		response.Header().Set("Content-Length", length)
		response.Write(body)
	}
}

func main() {
	http.Handle("GET /hello", answer([]byte("Hello, World!"), func() {}))
	http.Handle("GET /burn", answer([]byte("burned"), work.Burn))
	http.Handle("GET /sleep", answer([]byte("slept"), work.Sleep))
	http.Handle("GET /mb", answer(work.Megabyte, func() {}))
	log.Fatal(http.ListenAndServe(work.Address(), nil))
}
