#include <stddef.h>
#include <stdint.h>

uint32_t adler32(const uint8_t *data, size_t length);
