package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// A server with pauses sends no answer in the first part of each period.
	period = 2 * time.Second
	pause  = 100 * time.Millisecond
)

// The delay of the nth request. Any 100 requests in a row have the same distribution.
var distributions = map[string]func(n int) time.Duration{
	"constant": func(int) time.Duration { return 20 * time.Millisecond },
	"uniform": func(n int) time.Duration {
		// 37 has no common divisor with 100, so each of 100 values is used once.
		return 5*time.Millisecond + time.Duration(n*37%100)*300*time.Microsecond
	},
	"bimodal": func(n int) time.Duration {
		if n%10 == 9 {
			return 60 * time.Millisecond
		}
		return 10 * time.Millisecond
	},
	"pauses": func(int) time.Duration {
		due := time.Since(began) + 10*time.Millisecond
		if into := due % period; into < pause {
			due += pause - into
		}
		return due - time.Since(began)
	},
}

var began = time.Now()

// The delays of all answered requests, as they really were.
type delays struct {
	next func(n int) time.Duration

	lock   sync.Mutex
	number int
	real   []time.Duration
}

// wait delays the answer. Call what it returns at the end of the handler.
func (all *delays) wait() func() {
	if all.next == nil {
		return func() {}
	}
	start := time.Now()
	all.lock.Lock()
	number := all.number
	all.number++
	all.lock.Unlock()
	time.Sleep(all.next(number))
	return func() {
		spent := time.Since(start)
		all.lock.Lock()
		all.real = append(all.real, spent)
		all.lock.Unlock()
	}
}

// printAtEnd prints percentiles in seconds as a line of JSON and exits, when SIGTERM arrives.
func (all *delays) printAtEnd() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		all.lock.Lock()
		json.NewEncoder(os.Stdout).Encode(all.percentiles())
		os.Exit(0)
	}()
}

func (all *delays) percentiles() map[string]float64 {
	slices.Sort(all.real)
	values := map[string]float64{}
	for name, share := range map[string]float64{"p50": 0.5, "p99": 0.99, "p99.9": 0.999} {
		if count := len(all.real); count > 0 {
			values[name] = all.real[min(count-1, int(share*float64(count)))].Seconds()
		}
	}
	return values
}
