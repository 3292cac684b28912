/* One forward RNN layer with Tanh: device_raw T N I H CASE RESULTS, two folders of raw files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *load(const char *folder, const char *name, long count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/inputs/%s.bin", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  void *data = malloc(4 * count + 1);
  long got = fread(data, 4, count, file);
  fclose(file);
  return got == count ? data : NULL;
}

static void save(const char *folder, const char *name, const float *data, long count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/outputs/%s.bin", folder, name);
  FILE *file = fopen(path, "wb");
  fwrite(data, 4, count, file);
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  long T = atol(argv[1]), N = atol(argv[2]), I = atol(argv[3]), H = atol(argv[4]);
  const float *x = load(argv[5], "X", T * N * I), *w = load(argv[5], "W", H * I);
  const float *r = load(argv[5], "R", H * H), *b = load(argv[5], "B", 2 * H);
  const float *h0 = load(argv[5], "initial_h", N * H);
  const int *lens = load(argv[5], "sequence_lens", N);
  float *Y = calloc(T * N * H + 1, 4), *h = calloc(N * H + 1, 4), *next = malloc(4 * H + 4);
  if (h0) memcpy(h, h0, 4 * N * H);
  for (long n = 0; n < N; n++)
    for (long t = 0; t < (lens ? lens[n] : T); t++) {
      for (long u = 0; u < H; u++) {
        float sum = b ? b[u] + b[H + u] : 0;
        for (long i = 0; i < I; i++) sum += w[u * I + i] * x[(t * N + n) * I + i];
        for (long j = 0; j < H; j++) sum += r[u * H + j] * h[n * H + j];
        next[u] = tanhf(sum);
      }
      memcpy(h + n * H, next, 4 * H);
      memcpy(Y + (t * N + n) * H, next, 4 * H);
    }
  save(argv[6], "Y", Y, T * N * H);
  save(argv[6], "Y_h", h, N * H);
  return 0;
}
