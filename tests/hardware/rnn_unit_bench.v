// Feeds a quantised case of a hex pack to rnn_unit_cell and writes Y and Y_h, which have 8 bits, as
// judge.c reads them.
//
//   sed 's/`define ID_/`define /' PACK/test_ID/case.svh > case.vh
//   iverilog -o bench rnn_unit_bench.v rnn_unit_cell.v
//   vvp bench +pack=PACK +outputs=RESULTS/test_ID/outputs

`include "case.vh"

module rnn_unit_bench;
  localparam T = `SEQ_LENGTH, N = `BATCH_SIZE, I = `INPUT_SIZE, H = `HIDDEN_SIZE;

`include "float32.vh"

  reg [`X_WIDTH-1:0] X [0:T*N*I-1], X_zero [0:0];
  reg [`W_WIDTH-1:0] W [0:H*I-1], W_zero [0:`W_zero_point_DEPTH-1];
  reg [`R_WIDTH-1:0] R [0:H*H-1], R_zero [0:`R_zero_point_DEPTH-1];
  reg [`B_WIDTH-1:0] B [0:2*H-1], B_zero [0:0];
  reg [7:0] Y [0:T*N*H-1], Y_zero [0:0], Y_h [0:N*H-1], Y_h_zero [0:0];
  reg [31:0] X_scale [0:0], B_scale [0:0], Y_scale [0:0], Y_h_scale [0:0];
  reg [31:0] W_scale [0:`W_scale_DEPTH-1], R_scale [0:`R_scale_DEPTH-1];

  reg clock = 0;
  reg [32*I-1:0] x;
  reg [32*H-1:0] h;
  reg [32*H*I-1:0] W_words;
  reg [32*H*H-1:0] R_words;
  reg [64*H-1:0] bias, W_factor, R_factor;
  reg [63:0] levels;
  reg signed [31:0] lowest, highest;
  wire [32*H-1:0] h_next;
  rnn_unit_cell #(.I(I), .H(H)) cell_under_test (
      .clock(clock), .x(x), .h(h), .W(W_words), .R(R_words), .bias(bias), .W_factor(W_factor),
      .R_factor(R_factor), .levels(levels), .lowest(lowest), .highest(highest), .h_next(h_next));

  reg [8*512-1:0] pack, outputs;
  integer n, t, k, file, level;

  // A word of a type as an integer.
  function signed [31:0] integer_of(input [31:0] word, input [8*8-1:0] type);
    case (type)
      "int8": integer_of = {{24{word[7]}}, word[7:0]};
      "int16": integer_of = {{16{word[15]}}, word[15:0]};
      default: integer_of = word;
    endcase
  endfunction

  function signed [31:0] lowest_of(input [8*8-1:0] type);
    lowest_of = type == "int8" ? -128 : type == "int16" ? -32768 : 0;
  endfunction

  function signed [63:0] fixed(input real number, input integer bits);
    fixed = number * 2.0 ** bits;
  endfunction

  task read_case;
    begin
      $readmemh({pack, "/", `X_FILE}, X);
      $readmemh({pack, "/", `W_FILE}, W);
      $readmemh({pack, "/", `R_FILE}, R);
      $readmemh({pack, "/", `B_FILE}, B);
      $readmemh({pack, "/", `X_scale_FILE}, X_scale);
      $readmemh({pack, "/", `W_scale_FILE}, W_scale);
      $readmemh({pack, "/", `R_scale_FILE}, R_scale);
      $readmemh({pack, "/", `B_scale_FILE}, B_scale);
      $readmemh({pack, "/", `Y_scale_FILE}, Y_scale);
      $readmemh({pack, "/", `Y_h_scale_FILE}, Y_h_scale);
      $readmemh({pack, "/", `X_zero_point_FILE}, X_zero);
      $readmemh({pack, "/", `W_zero_point_FILE}, W_zero);
      $readmemh({pack, "/", `R_zero_point_FILE}, R_zero);
      $readmemh({pack, "/", `B_zero_point_FILE}, B_zero);
      $readmemh({pack, "/", `Y_zero_point_FILE}, Y_zero);
      $readmemh({pack, "/", `Y_h_zero_point_FILE}, Y_h_zero);
      for (k = 0; k < H*I; k = k + 1)
        W_words[32*k +: 32] = integer_of(W[k], `QUANTISE_W_TYPE)
                            - integer_of(W_zero[k/I % `W_zero_point_DEPTH], `QUANTISE_W_TYPE);
      for (k = 0; k < H*H; k = k + 1)
        R_words[32*k +: 32] = integer_of(R[k], `QUANTISE_R_TYPE)
                            - integer_of(R_zero[k/H % `R_zero_point_DEPTH], `QUANTISE_R_TYPE);
      for (k = 0; k < H; k = k + 1) begin  // constants of the hardware, made of scales
        W_factor[64*k +: 64] = fixed(value(X_scale[0]) * value(W_scale[k % `W_scale_DEPTH]), 48);
        R_factor[64*k +: 64] = fixed(value(Y_scale[0]) * value(R_scale[k % `R_scale_DEPTH]), 48);
        level = integer_of(B[k], `QUANTISE_B_TYPE) + integer_of(B[H + k], `QUANTISE_B_TYPE)
              - 2 * integer_of(B_zero[0], `QUANTISE_B_TYPE);
        bias[64*k +: 64] = fixed(level * value(B_scale[0]), 24);
      end
      levels = fixed(1.0 / value(Y_scale[0]), 24);
      lowest = lowest_of(`QUANTISE_Y_TYPE) - integer_of(Y_zero[0], `QUANTISE_Y_TYPE);
      highest = lowest + 255;
    end
  endtask

  task run_sequence;  // number n of the batch
    begin
      h = 0;
      for (t = 0; t < T; t = t + 1) begin
        for (k = 0; k < I; k = k + 1)
          x[32*k +: 32] = integer_of(X[(t*N + n)*I + k], `QUANTISE_X_TYPE)
                        - integer_of(X_zero[0], `QUANTISE_X_TYPE);
        #1 clock = 1;
        #1 clock = 0;
        h = h_next;
        for (k = 0; k < H; k = k + 1)
          Y[(t*N + n)*H + k] = h[32*k +: 32] + integer_of(Y_zero[0], `QUANTISE_Y_TYPE);
      end
      for (k = 0; k < H; k = k + 1) begin  // rounded again, to levels of its own
        level = $signed(h[32*k +: 32]) * value(Y_scale[0]) / value(Y_h_scale[0]);
        level = level + integer_of(Y_h_zero[0], `QUANTISE_Y_H_TYPE);
        if (level < lowest_of(`QUANTISE_Y_H_TYPE)) level = lowest_of(`QUANTISE_Y_H_TYPE);
        if (level > lowest_of(`QUANTISE_Y_H_TYPE) + 255)
          level = lowest_of(`QUANTISE_Y_H_TYPE) + 255;
        Y_h[n*H + k] = level;
      end
    end
  endtask

  initial begin
    if (!$value$plusargs("pack=%s", pack) || !$value$plusargs("outputs=%s", outputs)) $finish;
    read_case;
    for (n = 0; n < N; n = n + 1) run_sequence;
    file = $fopen({outputs, "/Y.bin"}, "wb");
    if (!file) $fatal(1, "cannot write %0s/Y.bin", outputs);
    for (k = 0; k < T*N*H; k = k + 1) $fwrite(file, "%c", Y[k]);
    $fclose(file);
    file = $fopen({outputs, "/Y_h.bin"}, "wb");
    for (k = 0; k < N*H; k = k + 1) $fwrite(file, "%c", Y_h[k]);
    $fclose(file);
    $finish;
  end
endmodule
