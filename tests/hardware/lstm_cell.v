// One step of a forward LSTM-14 with its default activations, behavioural: float32 words come in and
// go out, sums are real numbers. W, R and B are the input's own words, gates i, o, f, c, the first
// word in the low bits. BROKEN takes the forget gate for the output gate and the other way round.

module lstm_cell #(parameter I = 1, parameter H = 1) (
    input clock,
    input [32*I-1:0] x,
    input [32*H-1:0] h,
    input [32*H-1:0] c,
    input [32*4*H*I-1:0] W,
    input [32*4*H*H-1:0] R,
    input [32*8*H-1:0] B,
    output reg [32*H-1:0] h_next,
    output reg [32*H-1:0] c_next
);

`include "float32.vh"

`ifdef BROKEN
  localparam OUTPUT = 2, FORGET = 1;
`else
  localparam OUTPUT = 1, FORGET = 2;
`endif
  localparam INPUT = 0, CELL = 3;

  function real sigmoid(input real number);
    sigmoid = 1.0 / (1.0 + $exp(-number));
  endfunction

  // The pre-activation of a gate: Xt*(W^T) + Ht-1*(R^T) + Wb + Rb.
  function real gate(input integer which, input integer unit);
    integer k, row;
    begin
      row = which * H + unit;
      gate = value(B[32*row +: 32]) + value(B[32*(4*H + row) +: 32]);
      for (k = 0; k < I; k = k + 1)
        gate = gate + value(W[32*(row*I + k) +: 32]) * value(x[32*k +: 32]);
      for (k = 0; k < H; k = k + 1)
        gate = gate + value(R[32*(row*H + k) +: 32]) * value(h[32*k +: 32]);
    end
  endfunction

  integer u;
  real cell_state;
  always @(posedge clock)
    for (u = 0; u < H; u = u + 1) begin
      cell_state = sigmoid(gate(FORGET, u)) * value(c[32*u +: 32])
                 + sigmoid(gate(INPUT, u)) * $tanh(gate(CELL, u));
      c_next[32*u +: 32] <= float32(cell_state);
      h_next[32*u +: 32] <= float32(sigmoid(gate(OUTPUT, u)) * $tanh(cell_state));
    end
endmodule
