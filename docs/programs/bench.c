#include <math.h>
#include <stdio.h>
#include "test_rnn_14_ragged/case.h"

#define T rnn_14_ragged_SEQ_LENGTH
#define N rnn_14_ragged_BATCH_SIZE
#define I rnn_14_ragged_INPUT_SIZE
#define H rnn_14_ragged_HIDDEN_SIZE

int main(void) {
  float Y[T][N][H] = {{{0}}};
  int wrong = 0;
  for (int n = 0; n < N; n++)
    for (int t = 0; t < rnn_14_ragged_sequence_lens[n]; t++)
      for (int u = 0; u < H; u++) {
        float sum = rnn_14_ragged_B[u] + rnn_14_ragged_B[H + u];
        const float *x = rnn_14_ragged_X + (t * N + n) * I;
        const float *h = t ? Y[t - 1][n] : rnn_14_ragged_initial_h + n * H;
        for (int i = 0; i < I; i++) sum += rnn_14_ragged_W[u * I + i] * x[i];
        for (int j = 0; j < H; j++) sum += rnn_14_ragged_R[u * H + j] * h[j];
        Y[t][n][u] = tanhf(sum);
      }
  for (int k = 0; k < rnn_14_ragged_Y_COUNT; k++) {
    float got = (&Y[0][0][0])[k], wanted = rnn_14_ragged_Y[k];
    int alike = got == wanted || (isnan(got) && isnan(wanted));
    wrong += !(alike || fabsf(got - wanted) <= rnn_14_ragged_Y_tol[k]);  /* so NaN is wrong */
  }
  puts(wrong ? "differs" : "agrees");
  return wrong != 0;
}
