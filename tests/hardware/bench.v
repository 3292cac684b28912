// Feeds a case of a hex pack to lstm_cell and writes Y, Y_h and Y_c as judge.c reads them, or why
// the cell cannot run the case.
//
//   sed 's/`define ID_/`define /' PACK/test_ID/case.svh > case.vh
//   iverilog -o bench bench.v lstm_cell.v && vvp bench +pack=PACK +outputs=RESULTS/test_ID/outputs

`include "case.vh"

module bench;
  localparam T = `SEQ_LENGTH, N = `BATCH_SIZE, I = `INPUT_SIZE, H = `HIDDEN_SIZE;

  reg [31:0] X [0:T*N*I-1], W [0:4*H*I-1], R [0:4*H*H-1], B [0:8*H-1];
  reg [31:0] lengths [0:N-1], h0 [0:N*H-1], c0 [0:N*H-1];
  reg [31:0] Y [0:T*N*H-1], Y_h [0:N*H-1], Y_c [0:N*H-1];

  reg clock = 0;
  reg [32*I-1:0] x;
  reg [32*H-1:0] h, c;
  reg [32*4*H*I-1:0] W_words;
  reg [32*4*H*H-1:0] R_words;
  reg [32*8*H-1:0] B_words;
  wire [32*H-1:0] h_next, c_next;
  lstm_cell #(.I(I), .H(H)) cell_under_test (
      .clock(clock), .x(x), .h(h), .c(c), .W(W_words), .R(R_words), .B(B_words),
      .h_next(h_next), .c_next(c_next));

  reg [8*512-1:0] pack, outputs;
  reg [8*64-1:0] refusal;
  integer n, t, k, file;

  task find_refusal;  // 0 if there is none
    begin
      refusal = 0;
`ifdef ATTRIBUTE_ACTIVATIONS_COUNT
      refusal = "has no attribute activations";
`endif
`ifdef ATTRIBUTE_CLIP
      refusal = "has no attribute clip";
`endif
`ifdef ATTRIBUTE_DIRECTION
      refusal = "has no attribute direction";
`endif
`ifdef ATTRIBUTE_INPUT_FORGET
      refusal = "has no attribute input_forget";
`endif
`ifdef ATTRIBUTE_LAYOUT
      refusal = "has no attribute layout";
`endif
`ifdef P_FILE
      refusal = "has no peepholes";
`endif
      if (`DATA_SETS != 1) refusal = "runs one data set";
      if (T == 0 || N == 0 || I == 0 || H == 0) refusal = "needs sizes of at least 1";
      if (`X_PACK != 1) refusal = "reads words of one element, as without --pack";
      if (`DTYPE != "float32") refusal = {"is for float32, not ", `DTYPE};
      case (`OPERATOR)
        "LSTM-1", "LSTM-7", "LSTM-14", "LSTM-22": ;
        default: refusal = {"is not an LSTM but ", `OPERATOR};
      endcase
    end
  endtask

  task read_case;
    begin
      for (k = 0; k < N; k = k + 1) lengths[k] = T;
      for (k = 0; k < N*H; k = k + 1) begin h0[k] = 0; c0[k] = 0; end
      for (k = 0; k < 8*H; k = k + 1) B[k] = 0;
      $readmemh({pack, "/", `X_FILE}, X);
      $readmemh({pack, "/", `W_FILE}, W);
      $readmemh({pack, "/", `R_FILE}, R);
`ifdef B_FILE
      $readmemh({pack, "/", `B_FILE}, B);
`endif
`ifdef sequence_lens_FILE
      $readmemh({pack, "/", `sequence_lens_FILE}, lengths);
`endif
`ifdef initial_h_FILE
      $readmemh({pack, "/", `initial_h_FILE}, h0);
`endif
`ifdef initial_c_FILE
      $readmemh({pack, "/", `initial_c_FILE}, c0);
`endif
      for (k = 0; k < 4*H*I; k = k + 1) W_words[32*k +: 32] = W[k];
      for (k = 0; k < 4*H*H; k = k + 1) R_words[32*k +: 32] = R[k];
      for (k = 0; k < 8*H; k = k + 1) B_words[32*k +: 32] = B[k];
    end
  endtask

  task run_sequence;  // number n of the batch; what is beyond its length is 0
    begin
      for (k = 0; k < H; k = k + 1) begin h[32*k +: 32] = h0[n*H + k]; c[32*k +: 32] = c0[n*H + k]; end
      for (t = 0; t < T; t = t + 1)
        if (t < lengths[n]) begin
          for (k = 0; k < I; k = k + 1) x[32*k +: 32] = X[(t*N + n)*I + k];
          #1 clock = 1;
          #1 clock = 0;
          h = h_next;
          c = c_next;
          for (k = 0; k < H; k = k + 1) Y[(t*N + n)*H + k] = h[32*k +: 32];
        end else
          for (k = 0; k < H; k = k + 1) Y[(t*N + n)*H + k] = 0;
      for (k = 0; k < H; k = k + 1) begin Y_h[n*H + k] = h[32*k +: 32]; Y_c[n*H + k] = c[32*k +: 32]; end
    end
  endtask

  initial begin
    if (!$value$plusargs("pack=%s", pack) || !$value$plusargs("outputs=%s", outputs)) $finish;
    find_refusal;
    if (refusal) begin
      file = $fopen({outputs, "/../refused.txt"}, "w");
      if (!file) $fatal(1, "cannot write %0s/../refused.txt", outputs);
      $fdisplay(file, "%0s", refusal);
      $finish;
    end
    read_case;
    for (n = 0; n < N; n = n + 1) run_sequence;
    file = $fopen({outputs, "/Y.bin"}, "wb");
    if (!file) $fatal(1, "cannot write %0s/Y.bin", outputs);
    for (k = 0; k < T*N*H; k = k + 1) $fwrite(file, "%u", Y[k]);
    $fclose(file);
    file = $fopen({outputs, "/Y_h.bin"}, "wb");
    for (k = 0; k < N*H; k = k + 1) $fwrite(file, "%u", Y_h[k]);
    $fclose(file);
    file = $fopen({outputs, "/Y_c.bin"}, "wb");
    for (k = 0; k < N*H; k = k + 1) $fwrite(file, "%u", Y_c[k]);
    $fclose(file);
    $finish;
  end
endmodule
