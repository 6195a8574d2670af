// Package checksum computes Adler-32 in C.
package checksum

// #include "adler.h"
import "C"
import "unsafe"

// Compute returns the checksum of data.
func Compute(data []byte) uint32 {
	if len(data) == 0 {
		return 1
	}
	return uint32(C.adler32((*C.uint8_t)(unsafe.Pointer(&data[0])), C.size_t(len(data))))
}
