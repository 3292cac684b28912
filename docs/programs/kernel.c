/* One forward RNN layer with Tanh: kernel INPUTS OUTPUTS, two folders of input_K.pb, output_K.pb. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int rank, type; long dims[4]; char name[64]; void *data; } Tensor;

static unsigned long varint(FILE *file) {
  unsigned long value = 0;
  for (int byte = 128, shift = 0; byte & 128; shift += 7)
    value |= (unsigned long)((byte = getc(file)) & 127) << shift;
  return value;
}

static int load(const char *folder, int k, Tensor *tensor) {
  char path[4096];
  snprintf(path, sizeof path, "%s/input_%d.pb", folder, k);
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  *tensor = (Tensor){0};
  for (int tag; (tag = getc(file)) != EOF;) {
    unsigned long n = varint(file);
    if (tag == 0x08) tensor->dims[tensor->rank++] = n;
    if (tag == 0x10) tensor->type = n;
    if (tag == 0x42 && fread(tensor->name, 1, n, file) != n) return 0;
    if (tag == 0x4a && fread(tensor->data = malloc(n), 1, n, file) != n) return 0;
  }
  return !fclose(file);
}

static void put_varint(FILE *file, unsigned long value) {
  for (; value > 127; value >>= 7) putc((value & 127) | 128, file);
  putc(value, file);
}

static void save(const char *folder, int k, int rank, const long *dims, const float *data) {
  char path[4096];
  snprintf(path, sizeof path, "%s/output_%d.pb", folder, k);
  FILE *file = fopen(path, "wb");
  unsigned long count = 1;
  for (int d = 0; d < rank; count *= dims[d++]) putc(0x08, file), put_varint(file, dims[d]);
  putc(0x10, file), put_varint(file, 1); /* float32 */
  putc(0x4a, file), put_varint(file, 4 * count);
  fwrite(data, 4, count, file);
  fclose(file);
}

int main(int argc, char **argv) {
  Tensor X = {0}, W = {0}, R = {0}, B = {0}, lens = {0}, h0 = {0}, in;
  if (argc != 3) { fputs("usage: kernel INPUTS OUTPUTS\n", stderr); return 2; }
  for (int k = 0; load(argv[1], k, &in); k++)
    *(!strcmp(in.name, "X") ? &X : !strcmp(in.name, "W") ? &W : !strcmp(in.name, "R") ? &R
      : !strcmp(in.name, "B") ? &B : !strcmp(in.name, "sequence_lens") ? &lens : &h0) = in;
  if (!X.type) { fprintf(stderr, "%s: no input_0.pb, or none named X\n", argv[1]); return 1; }
  if (X.type != 1) { fputs("only float32\n", stderr); return 3; }
  long T = X.dims[0], N = X.dims[1], I = X.dims[2], H = R.dims[2];
  const float *x = X.data, *w = W.data, *r = R.data, *b = B.data;
  float *Y = calloc(T * N * H + 1, 4), *h = calloc(N * H + 1, 4), *next = malloc(4 * H + 4);
  if (h0.data) memcpy(h, h0.data, 4 * N * H);
  for (long n = 0; n < N; n++)
    for (long t = 0; t < (lens.data ? ((int *)lens.data)[n] : T); t++) {
      for (long u = 0; u < H; u++) {
        float sum = b ? b[u] + b[H + u] : 0;
        for (long i = 0; i < I; i++) sum += w[u * I + i] * x[(t * N + n) * I + i];
        for (long j = 0; j < H; j++) sum += r[u * H + j] * h[n * H + j];
        next[u] = tanhf(sum);
      }
      memcpy(h + n * H, next, 4 * H);
      memcpy(Y + (t * N + n) * H, next, 4 * H);
    }
  save(argv[2], 0, 4, (long[]){T, 1, N, H}, Y);
  save(argv[2], 1, 3, (long[]){1, N, H}, h);
  return 0;
}
