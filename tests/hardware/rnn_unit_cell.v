// One step of a forward RNN between DequantizeLinear and QuantizeLinear, in integers: levels with
// their zero points subtracted come in and go out, so H has the levels of Y after each step, which
// is the reading requantise=state. Sums have 24 bits behind the point; tanh is behavioural, where
// hardware has a table. BROKEN leaves out the half that is added before bits are shifted out.

module rnn_unit_cell #(parameter I = 1, parameter H = 1) (
    input clock,
    input [32*I-1:0] x,
    input [32*H-1:0] h,
    input [32*H*I-1:0] W,
    input [32*H*H-1:0] R,
    input [64*H-1:0] bias,        // of each row, 24 bits behind the point
    input [64*H-1:0] W_factor,    // the scale of X by that of the row of W, 48 bits behind the point
    input [64*H-1:0] R_factor,    // the scale of Y by that of the row of R, likewise
    input [63:0] levels,          // in 1.0, 24 bits behind the point
    input signed [31:0] lowest,
    input signed [31:0] highest,
    output reg [32*H-1:0] h_next
);

`ifdef BROKEN
  localparam HALF = 64'd0;
`else
  localparam HALF = 64'd1 << 53;
`endif

  integer u, k;
  reg signed [63:0] x_sum, h_sum, sum, level;
  real argument;
  always @(posedge clock)
    for (u = 0; u < H; u = u + 1) begin
      x_sum = 0;
      h_sum = 0;
      for (k = 0; k < I; k = k + 1)
        x_sum = x_sum + $signed(W[32*(u*I + k) +: 32]) * $signed(x[32*k +: 32]);
      for (k = 0; k < H; k = k + 1)
        h_sum = h_sum + $signed(R[32*(u*H + k) +: 32]) * $signed(h[32*k +: 32]);
      sum = $signed(bias[64*u +: 64])
          + ((x_sum * $signed(W_factor[64*u +: 64])) >>> 24)
          + ((h_sum * $signed(R_factor[64*u +: 64])) >>> 24);
      argument = sum;
      level = $tanh(argument / 16777216.0) * 1073741824.0;  // 30 bits behind the point
      level = (level * $signed(levels) + $signed(HALF)) >>> 54;
      h_next[32*u +: 32] <= level < lowest ? lowest : level > highest ? highest : level[31:0];
    end
endmodule
