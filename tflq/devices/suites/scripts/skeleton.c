/* A target of tflq's conformance suites in C99. It is complete: it runs RESHAPE, and refuses everything else.

   cc -std=c99 -O1 -o my_target my_target.c
   tflq conform make -o suite.npz --level smoke
   tflq conform run suite.npz --target ./my_target

   Replace `run_model` by a call of your system; the rest is the protocol. examples/target/target.c of tflq reads
   .tflite files without a library. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 16, AXES = 8, LONGEST = 1 << 24, PATH = 4096 };

struct tensor {
  char type[16]; /* int8, uint8, int16, int32, float32 ... */
  int axes, shape[AXES];
  size_t bytes;
  uint8_t *data; /* little endian, in C order */
};

struct model {
  char path[PATH];     /* of the .tflite file */
  char operator[128];  /* the lower-case name of its one operator */
  int samples, inputs, outputs;
  struct tensor in[TENSORS], out[TENSORS];
};

/* Run the model once: from in[i].data to out[i].data. Return NULL, or the reason why your system does not support the
   model. Reports group reasons: keep them general. */
static const char *run_model(struct model *m) {
  if (strcmp(m->operator, "reshape") || m->inputs != 1 || m->outputs != 1) return "no kernel for this operator";
  if (strcmp(m->in[0].type, m->out[0].type) || m->in[0].bytes != m->out[0].bytes) return "RESHAPE to another size";
  memcpy(m->out[0].data, m->in[0].data, m->out[0].bytes);
  return NULL;
}

static void fail(const char *what, const char *path) {
  fprintf(stderr, "%s: %s\n", path, what);
  exit(2);
}

static void join(char *path, const char *folder, const char *name) {
  if (snprintf(path, PATH, "%s/%s", folder, name) >= PATH) fail("the path is too long", folder);
}

static size_t size_of(const char *type) {
  static const char *const types[] = {"bool 1", "int8 1", "uint8 1", "int16 2", "float16 2", "int32 4", "float32 4"};
  size_t length = strlen(type);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strncmp(types[i], type, length) && types[i][length] == ' ') return (size_t)(types[i][length + 1] - '0');
  return 8; /* int64, float64, complex64 */
}

/* Read a line of case.txt: TYPE SIZE... */
static void read_tensor(struct tensor *t, char *line) {
  char *word = strtok(line, " \n");
  memset(t, 0, sizeof *t);
  if (word) strncpy(t->type, word, sizeof t->type - 1);
  t->bytes = size_of(t->type);
  while ((word = strtok(NULL, " \n")) && t->axes < AXES) t->bytes *= (size_t)(t->shape[t->axes++] = atoi(word));
  if (t->bytes > LONGEST) fail("is too large a tensor", line);
  t->data = calloc(t->bytes + 1, 1);
  if (!t->data) fail("no memory", line);
}

static void read_description(struct model *m, const char *place) {
  char path[PATH], line[512];
  join(path, place, "case.txt");
  FILE *file = fopen(path, "r");
  if (!file) fail("cannot be read", path);
  while (fgets(line, sizeof line, file)) {
    if (!strncmp(line, "samples ", 8)) m->samples = atoi(line + 8);
    if (!strncmp(line, "input ", 6) && m->inputs < TENSORS) read_tensor(&m->in[m->inputs++], line + 6);
    if (!strncmp(line, "output ", 7) && m->outputs < TENSORS) read_tensor(&m->out[m->outputs++], line + 7);
  }
  fclose(file);
}

static void store(const char *place, const char *name, const void *data, size_t size) {
  char path[PATH];
  join(path, place, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file)) fail("cannot be written", path);
}

static const char *run_samples(struct model *m, const char *place) {
  char path[PATH], name[64];
  if (!m->outputs) return "a model that a target must refuse"; /* its operands do not fit: refuse it by its file */
  for (int sample = 0; sample < m->samples; sample++) {
    for (int i = 0; i < m->inputs; i++) {
      snprintf(name, sizeof name, "in%d_%d.bin", sample, i);
      join(path, place, name);
      FILE *file = fopen(path, "rb");
      if (!file || fread(m->in[i].data, 1, m->in[i].bytes, file) != m->in[i].bytes) fail("cannot be read", path);
      fclose(file);
    }
    const char *refusal = run_model(m);
    if (refusal) return refusal; /* for every sample or for none: outputs beside a refusal are an error */
    for (int i = 0; i < m->outputs; i++) {
      snprintf(name, sizeof name, "out%d_%d.bin", sample, i);
      store(place, name, m->out[i].data, m->out[i].bytes);
    }
  }
  return NULL;
}

int main(int count, char **words) {
  char path[PATH], place[PATH], name[128];
  if (count < 2) return 2;
  join(path, words[count - 1], "cases.txt");
  FILE *list = fopen(path, "r");
  if (!list) fail("cannot be read", path);
  while (fscanf(list, "%127s", name) == 1) { /* a crash costs one case: tflq calls again for the cases after it */
    struct model *m = calloc(1, sizeof *m);
    if (!m) fail("no memory", name);
    const char *dash = strchr(name, '-'); /* cases are named NUMBER-operator */
    if (dash) strcpy(m->operator, dash + 1);
    join(place, words[count - 1], name);
    join(m->path, place, "model.tflite");
    read_description(m, place);
    const char *refusal = run_samples(m, place);
    if (refusal) store(place, "refused.txt", refusal, strlen(refusal));
    for (int i = 0; i < m->inputs; i++) free(m->in[i].data);
    for (int i = 0; i < m->outputs; i++) free(m->out[i].data);
    free(m);
  }
  fclose(list);
  return 0;
}
