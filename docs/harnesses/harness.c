/* A harness for one forward RNN layer with Tanh, all float32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 20], dir[4096];

/* Load an input of four bytes an element; return NULL if there is none of that type. */
static void *load(const char *name, const char *type, long *dims) {
  char key[64], file[4096], dtype[16];
  snprintf(key, sizeof key, "\"%s\":{\"file\":", name);
  char *at = strstr(line, key);
  dims[0] = dims[1] = dims[2] = 1;
  const char *row = "\"%4095[^\"]\",\"dtype\":\"%15[^\"]\",\"shape\":[%ld,%ld,%ld";
  if (!at || sscanf(at + strlen(key), row, file, dtype, dims, dims + 1, dims + 2) < 3 ||
      strcmp(dtype, type))
    return NULL;
  size_t count = dims[0] * dims[1] * dims[2];
  void *data = malloc(4 * count + 4);
  FILE *stream = fopen(file, "rb");
  if (!stream || fread(data, 4, count, stream) != count) exit(1);
  fclose(stream);
  return data;
}

/* Write an output if it is asked for; return how many were written before and with it. */
static int save(int before, const char *name, const float *data, size_t count, const char *shape) {
  char key[64], path[4200], *asked = strstr(strstr(line, "\"initializers\":"), "\"outputs\":[");
  snprintf(key, sizeof key, "\"%s\"", name);
  char *found = strstr(asked, key);
  if (!found || found > strchr(asked, ']')) return before;
  snprintf(path, sizeof path, "%s/%s.bin", dir, name);
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(data, 4, count, stream) != count || fclose(stream)) exit(1);
  printf("%s%s:{\"file\":\"%s.bin\",\"dtype\":\"float32\",\"shape\":%s}", before ? "," : "", key,
         name, shape);
  return before + 1;
}

/* Whether attributes, up to their end, say what shapes and requested outputs do, or defaults. */
static int are_plain(const char *at) {
  static const char *const PLAIN[] = {"\"hidden_size\":", "\"output_sequence\":",
                                      "\"direction\":\"forward\"", "\"layout\":0",
                                      "\"activations\":[\"Tanh\"]"};
  for (int k = 0; k < 5; k++)
    if (!strncmp(at, PLAIN[k], strlen(PLAIN[k]))) {
      at += strlen(PLAIN[k]);
      at += strspn(at, "0123456789,");
      k = -1;
    }
  return *at == '}';
}

static void run(int seq) {
  long xd[3], wd[3], rd[3], bd[3], hd[3], ld[3];
  char *attributes = strstr(line, "\"attributes\":{") + strlen("\"attributes\":{"), shape[96];
  float *X = load("X", "float32", xd), *W = load("W", "float32", wd), *R = load("R", "float32", rd);
  float *B = load("B", "float32", bd), *h0 = load("initial_h", "float32", hd);
  int *lengths = load("sequence_lens", "int32", ld);
  const char *reason = !strstr(line, "\"operator\":\"RNN-") ? "only RNN"
                       : !X || strstr(line, "\"quantise\":") ? "only float32"
                       : !are_plain(attributes) ? "only defaults"
                                                : NULL;
  if (reason) {
    printf("{\"seq\":%d,\"skipped\":true,\"message\":\"%s\"}\n", seq, reason);
  } else {
    long T = xd[0], N = xd[1], I = xd[2], H = rd[2];
    float *Y = calloc(T * N * H + 1, 4), *h = calloc(N * H + 1, 4);
    if (h0) memcpy(h, h0, 4 * N * H);
    for (long row = 0; row < T * N; row++) {
      long t = row / N, n = row % N;
      if (lengths && t >= lengths[n]) continue; /* Y stays 0, and the state as it is */
      for (long u = 0; u < H; u++) {
        float sum = B ? B[u] + B[H + u] : 0;
        for (long i = 0; i < I; i++) sum += W[u * I + i] * X[row * I + i];
        for (long j = 0; j < H; j++) sum += R[u * H + j] * h[n * H + j];
        Y[row * H + u] = tanhf(sum);
      }
      memcpy(h + n * H, Y + row * H, 4 * H);
    }
    printf("{\"seq\":%d,\"outputs\":{", seq);
    snprintf(shape, sizeof shape, "[%ld,1,%ld,%ld]", T, N, H);
    int written = save(0, "Y", Y, T * N * H, shape);
    snprintf(shape, sizeof shape, "[1,%ld,%ld]", N, H);
    save(written, "Y_h", h, N * H, shape);
    puts("}}");
    free(Y), free(h);
  }
  free(X), free(W), free(R), free(B), free(h0), free(lengths);
}

int main(void) {
  int seq;
  while (fgets(line, sizeof line, stdin) && !strstr(line, "\"cmd\":\"stop\"")) {
    if (sscanf(line, "{\"cmd\":\"run\",\"seq\":%d", &seq) == 1) {
      sscanf(strstr(line, "\"dir\":\""), "\"dir\":\"%4095[^\"]", dir);
      run(seq);
    } else
      puts("{\"version\":1,\"implementation\":"
           "{\"name\":\"my-kernel\",\"version\":\"1.0\",\"language\":\"C\"}}");
    fflush(stdout);
  }
}
