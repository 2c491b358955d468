/* A target of tflq's conformance suite in plain C: FULLY_CONNECTED of int8, as a microcontroller would compute it.

   cc -O1 -o target target.c -lm && tflq conform run suite.npz --target ./target

   docs/target-protocol.md says what a target is given. Everything that this one does not know it refuses, as a firmware
   without that kernel would. A real target has its runtime in the place of `invoke`. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULLY_CONNECTED = 9, INT32 = 2, INT8 = 9, RELU = 1, RELU6 = 3, LONGEST = 1 << 20 };

/* FlatBuffers: a table begins with the distance to its vtable, which holds the distance of every field, 0 for none. */
static const uint8_t *file;
static uint32_t file_size;

static int32_t word(const uint8_t *at) {
  int32_t value;
  if (at < file || at + 4 > file + file_size) exit(3);
  memcpy(&value, at, 4);
  return value;
}

static const uint8_t *field(const uint8_t *table, int number) {
  const uint8_t *vtable = table - word(table);
  uint16_t size, distance;
  if (vtable < file || vtable + 4 > file + file_size) exit(3);
  memcpy(&size, vtable, 2);
  if (vtable + size > file + file_size || size < 6 + 2 * number) return NULL;
  memcpy(&distance, vtable + 4 + 2 * number, 2);
  return distance ? table + distance : NULL;
}

static const uint8_t *follow(const uint8_t *at) { return at ? at + word(at) : NULL; }
static const uint8_t *child(const uint8_t *table, int number) { return table ? follow(field(table, number)) : NULL; }
static int length(const uint8_t *vector) { return vector ? word(vector) : 0; }
static int number_at(const uint8_t *vector, int i) { return i < length(vector) ? word(vector + 4 + 4 * i) : -1; }
static const uint8_t *table_at(const uint8_t *vector, int i) {
  return i >= 0 && i < length(vector) ? follow(vector + 4 + 4 * i) : NULL;
}

struct tensor {
  int type, size, last; /* elements, and how many of them in a row */
  double scale;
  int zero_point, scales;
  const uint8_t *data;
};

static struct tensor tensor(const uint8_t *graph, const uint8_t *buffers, int index) {
  struct tensor t = {0, 1, 1, 0.0, 0, 0, NULL};
  const uint8_t *table = table_at(child(graph, 0), index), *shape = child(table, 0), *type, *quantization, *at, *data;
  float scale = 0;
  if (!table) return t;
  for (int i = 0; i < length(shape); i++) t.size *= t.last = number_at(shape, i);
  if ((type = field(table, 1))) t.type = *type;
  quantization = child(table, 4);
  if (quantization && (t.scales = length(child(quantization, 2)))) {
    memcpy(&scale, child(quantization, 2) + 4, 4);
    t.scale = scale;
    t.zero_point = word(child(quantization, 3) + 4); /* int64, whose lower half comes first */
  }
  at = field(table, 2);
  data = at ? child(table_at(buffers, word(at)), 0) : NULL;
  if (data && data + 4 + length(data) <= file + file_size) t.data = data + 4;
  return t;
}

/* gemmlowp: the high half of the doubled product, half up; then a shift to the right, half away from zero. */
static int32_t scaled(int32_t x, int32_t mantissa, int shift) {
  int left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  int64_t product = (int64_t)(int32_t)((uint32_t)x << left) * mantissa;
  int32_t high = (int32_t)((product + (1 << 30)) >> 31);
  int32_t mask = (int32_t)((1LL << right) - 1), rest = high & mask, half = (mask >> 1) + (high < 0);
  return (high >> right) + (rest > half);
}

static const char *invoke(const int8_t *x, int8_t *y, const uint8_t *model) {
  const uint8_t *graph = table_at(child(model, 2), 0), *buffers = child(model, 4);
  const uint8_t *operator = table_at(child(graph, 3), 0), *code = table_at(child(model, 1), 0);
  const uint8_t *kind = code ? field(code, 0) : NULL, *options = child(operator, 4), *activation;
  const uint8_t *in = child(operator, 1), *out = child(operator, 2);
  struct tensor a, w, b, r;
  int low, high, shift, function = 0;
  if (!kind || *kind != FULLY_CONNECTED || length(in) != 3) return "only FULLY_CONNECTED with a bias";
  a = tensor(graph, buffers, number_at(in, 0)), w = tensor(graph, buffers, number_at(in, 1));
  b = tensor(graph, buffers, number_at(in, 2)), r = tensor(graph, buffers, number_at(out, 0));
  if (a.type != INT8 || w.type != INT8 || b.type != INT32 || r.type != INT8) return "only int8";
  if (!w.data || !b.data || w.scales != 1 || w.last < 1 || a.size % w.last) return "only constant weights of one scale";
  if (options && (activation = field(options, 0))) function = *activation;
  low = function ? r.zero_point : -128, high = 127;
  if (function == RELU6 && r.zero_point + round(6 / r.scale) < 127) high = r.zero_point + (int)round(6 / r.scale);
  if (low < -128) low = -128;
  if (function != 0 && function != RELU && function != RELU6) return "unknown activation";
  double fraction = frexp((double)((float)a.scale * (float)w.scale) / r.scale, &shift);
  int64_t mantissa = (int64_t)round(fraction * 2147483648.0);
  if (mantissa == 1LL << 31) mantissa /= 2, shift++;
  for (int row = 0; row < a.size / w.last; row++)
    for (int unit = 0; unit < b.size; unit++) {
      int32_t sum;
      memcpy(&sum, b.data + 4 * unit, 4);
      for (int k = 0; k < w.last; k++)
        sum += (x[row * w.last + k] - a.zero_point) * ((const int8_t *)w.data)[unit * w.last + k];
      sum = scaled(sum, (int32_t)mantissa, shift) + r.zero_point;
      y[row * b.size + unit] = (int8_t)(sum < low ? low : sum > high ? high : sum);
    }
  return NULL;
}

static uint32_t load(const char *folder, const char *name, const char *file_name, void *data) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s/%s", folder, name, file_name);
  FILE *stream = fopen(path, "rb");
  if (!stream) return 0;
  uint32_t size = (uint32_t)fread(data, 1, LONGEST, stream);
  fclose(stream);
  return size;
}

static void store(const char *folder, const char *name, const char *file_name, const void *data, uint32_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s/%s", folder, name, file_name);
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(data, 1, size, stream) != size || fclose(stream)) exit(2);
}

int main(int count, char **words) {
  static uint8_t model[LONGEST];
  static int8_t x[LONGEST], y[LONGEST];
  char path[4096], name[128], file_name[32];
  if (count != 2) return 2;
  snprintf(path, sizeof path, "%s/cases.txt", words[1]);
  FILE *list = fopen(path, "r");
  if (!list) return 2;
  while (fscanf(list, "%127s", name) == 1) {
    const char *refusal = NULL;
    file = model, file_size = load(words[1], name, "model.tflite", model);
    for (int sample = 0; !refusal; sample++) {
      snprintf(file_name, sizeof file_name, "in%d_0.bin", sample);
      if (!load(words[1], name, file_name, x)) break;
      refusal = invoke(x, y, model + word(model));
      if (!refusal) {
        const uint8_t *graph = table_at(child(model + word(model), 2), 0);
        struct tensor r = tensor(graph, NULL, number_at(child(graph, 2), 0));
        snprintf(file_name, sizeof file_name, "out%d_0.bin", sample);
        store(words[1], name, file_name, y, (uint32_t)r.size);
      }
    }
    if (refusal) store(words[1], name, "refused.txt", refusal, (uint32_t)strlen(refusal));
  }
  fclose(list);
  return 0;
}
