// An object server over one protocol: HTTP/1.1, HTTP/2 without TLS (h2c), or HTTP/3.
//
//	server --bind 127.0.0.1 --port 8080 --protocol h1
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
)

// memory is a folder in memory. On a disk, its write-back would be measured, and slow later trials.
const memory = "/dev/shm"

func main() {
	at := Listening{}
	flag.StringVar(&at.Bind, "bind", "127.0.0.1", "address to listen on")
	flag.StringVar(&at.Port, "port", "8080", "port, of TCP and of UDP")
	flag.StringVar(&at.Protocol, "protocol", "h1", "h1, h2 (without TLS) or h3")
	flag.StringVar(&at.Cert, "cert", "", "certificate of the server, for h3")
	flag.StringVar(&at.Key, "key", "", "its key")
	parent := flag.String("data", memory, "where the folder of the objects is made")
	flag.Parse()

	folder, err := os.MkdirTemp(*parent, "objects-")
	if err != nil {
		log.Fatal(err)
	}
	asked, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed := make(chan error, 2)
	at.Serve(Objects{Folder: folder}.Handler(), failed)

	var problem error
	select {
	case <-asked.Done():
	case problem = <-failed:
	}
	// Otherwise the objects of several trials would fill the memory of the host.
	os.RemoveAll(folder)
	if problem != nil {
		log.Fatal(problem)
	}
}
