// Package work is the work of a request, in steps between which other requests run.
package work

import (
	"bytes"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

const (
	steps = 20
	step  = 7500 * time.Microsecond / steps
	// CLOCK_THREAD_CPUTIME_ID of time.h.
	threadCPUTime = 3
)

// Megabyte is the body of /mb.
var Megabyte = bytes.Repeat([]byte("x"), 1_000_000)

// Address is where to listen, from the arguments BIND PORT.
func Address() string {
	return net.JoinHostPort(os.Args[1], os.Args[2])
}

// Burn uses 7.5 ms of its threads' CPU time.
func Burn() {
	for range steps {
		burnStep()
		runtime.Gosched()
	}
}

// Sleep ends each step on time, so that late ones do not add up.
func Sleep() {
	start := time.Now()
	for n := range steps {
		time.Sleep(time.Until(start.Add(time.Duration(n+1) * step)))
	}
}

func burnStep() {
	// The clock is that of one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := threadCPU() + step; threadCPU() < end; {
	}
}

func threadCPU() time.Duration {
	var spec syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&spec)), 0)
	return time.Duration(spec.Nano())
}
