package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
)

const largestObject = 64 << 20

// A key is the name of its file, so it must not lead elsewhere.
var key = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Objects are files of a folder, one per key.
type Objects struct {
	Folder string
}

// Handler puts, gets and deletes /objects/KEY.
func (objects Objects) Handler() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /health", func(response http.ResponseWriter, _ *http.Request) {
		io.WriteString(response, "ok")
	})
	routes.HandleFunc("PUT /objects/{key}", objects.withPath(put))
	routes.HandleFunc("GET /objects/{key}", objects.withPath(get))
	routes.HandleFunc("DELETE /objects/{key}", objects.withPath(remove))
	return routes
}

type operation func(path string, response http.ResponseWriter, request *http.Request) error

func (objects Objects) withPath(do operation) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		name := request.PathValue("key")
		if !key.MatchString(name) {
			http.Error(response, "a key has letters, digits, _ and -", http.StatusBadRequest)
			return
		}
		err := do(filepath.Join(objects.Folder, name), response, request)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			http.Error(response, "no such object", http.StatusNotFound)
		case err != nil:
			http.Error(response, err.Error(), http.StatusInternalServerError)
		}
	}
}

// put replaces an object atomically: concurrent readers get the complete old or new one.
func put(path string, response http.ResponseWriter, request *http.Request) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, http.MaxBytesReader(response, request.Body, largestObject))
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return err
	}
	response.Header().Set("Content-Length", "0")
	response.WriteHeader(http.StatusOK)
	return nil
}

func get(path string, response http.ResponseWriter, request *http.Request) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return err
	}
	response.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(response, request, "", about.ModTime(), file)
	return nil
}

func remove(path string, response http.ResponseWriter, _ *http.Request) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	response.WriteHeader(http.StatusNoContent)
	return nil
}
