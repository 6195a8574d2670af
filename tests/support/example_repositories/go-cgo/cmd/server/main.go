// A server that answers with the checksum of what it gets.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"

	"example.org/checksums/checksum"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "the address")
	flag.Parse()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%08x\n", checksum.Compute(data))
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
