/* A harness for one forward RNN layer with Tanh, all float32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 20], dir[4096];

/* Load an input; return NULL if there is none, or it is not float32. */
static float *load(const char *name, long *dims) {
  char key[64], file[4096];
  snprintf(key, sizeof key, "\"%s\":{\"file\":", name);
  char *at = strstr(line, key);
  dims[0] = dims[1] = dims[2] = 1;
  if (!at || sscanf(at + strlen(key), "\"%4095[^\"]\",\"dtype\":\"float32\",\"shape\":[%ld,%ld,%ld",
                    file, dims, dims + 1, dims + 2) < 2)
    return NULL;
  size_t count = dims[0] * dims[1] * dims[2];
  float *data = malloc(4 * count + 4);
  FILE *stream = fopen(file, "rb");
  if (!stream || fread(data, 4, count, stream) != count) exit(1);
  fclose(stream);
  return data;
}

/* Write an output if it is asked for; return how many were written before and with it. */
static int save(int before, const char *name, const float *data, size_t count, const char *shape) {
  char key[64], path[4200], *asked = strstr(line, "\"outputs\":[");
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

static void run(int seq) {
  long xd[3], wd[3], rd[3], bd[3], hd[3], H;
  char *attributes = strstr(line, "\"attributes\":{"), end = 0, shape[96];
  float *X = load("X", xd), *W = load("W", wd), *R = load("R", rd), *B = load("B", bd);
  float *h0 = load("initial_h", hd);
  if (!strstr(line, "\"operator\":\"RNN-") || !X || strstr(line, "\"sequence_lens\":{") ||
      sscanf(attributes, "\"attributes\":{\"hidden_size\":%ld%c", &H, &end) != 2 || end != '}') {
    printf("{\"seq\":%d,\"skipped\":true,\"message\":\"only plain forward RNN in float32\"}\n", seq);
  } else {
    long T = xd[0], N = xd[1], I = xd[2];
    float *Y = calloc((T + 1) * N * H + 1, 4); /* Y[0] is the state before the first step */
    if (h0) memcpy(Y, h0, 4 * N * H);
    for (long k = 0; k < T * N * H; k++) {
      long u = k % H, row = k / H; /* row = t * N + n */
      float sum = B ? B[u] + B[H + u] : 0;
      for (long i = 0; i < I; i++) sum += W[u * I + i] * X[row * I + i];
      for (long j = 0; j < H; j++) sum += R[u * H + j] * Y[row * H + j];
      Y[N * H + k] = tanhf(sum);
    }
    printf("{\"seq\":%d,\"outputs\":{", seq);
    snprintf(shape, sizeof shape, "[%ld,1,%ld,%ld]", T, N, H);
    int written = save(0, "Y", Y + N * H, T * N * H, shape);
    snprintf(shape, sizeof shape, "[1,%ld,%ld]", N, H);
    save(written, "Y_h", Y + T * N * H, N * H, shape);
    puts("}}");
    free(Y);
  }
  free(X), free(W), free(R), free(B), free(h0);
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
