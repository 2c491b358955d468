/* Prints tensors as lines of text that tflq reads back: `tflq why model.tflite board.log`.
 *
 * A line holds 24 bytes of a tensor and a checksum, so that other output between the lines, cut lines and lost
 * characters do no harm: TFLQ <sample> <tensor> <bytes> <first byte> <hexadecimal> <CRC-32 of the line up to here>.
 * `tensor` is the tensor's number in the model (`tflq inspect` shows it). C99 or C++11; no memory is allocated.
 * Define TFLQ_PRINT(text) to print a line by other means than puts.
 *
 * Copyright the tflq authors. Apache License 2.0. */
#ifndef TFLQ_LOG_H_
#define TFLQ_LOG_H_
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#ifndef TFLQ_PRINT
#define TFLQ_PRINT(text) puts(text)
#endif

static inline void tflq_log(unsigned sample, unsigned tensor, const void *data, size_t bytes) {
  const unsigned char *at = (const unsigned char *)data;
  for (size_t first = 0; first < bytes; first += 24) {
    char line[128];
    size_t n = (size_t)snprintf(line, sizeof line, "TFLQ %u %u %lu %lu ", sample, tensor, (unsigned long)bytes,
                                (unsigned long)first);
    uint32_t crc = 0xffffffffu;
    for (size_t k = first; k < bytes && k < first + 24; k++, n += 2) snprintf(line + n, 3, "%02x", at[k]);
    for (size_t k = 0; k < n; k++) {
      crc ^= (unsigned char)line[k];
      for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1u) ? 0xedb88320u : 0u);
    }
    snprintf(line + n, sizeof line - n, " %08lx", (unsigned long)(crc ^ 0xffffffffu));
    TFLQ_PRINT(line);
  }
}
#endif /* TFLQ_LOG_H_ */
