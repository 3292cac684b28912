// float32 words as real numbers, and back with one rounding; finite numbers only, subnormals are 0.

function real value(input [31:0] word);
  value = word[30:23] == 0 ? 0.0
        : $bitstoreal({word[31], {3'd0, word[30:23]} + 11'd896, word[22:0], 29'd0});
endfunction

function [31:0] float32(input real number);
  reg [63:0] bits;
  reg [10:0] exponent;
  reg [24:0] significand;
  begin
    bits = $realtobits(number);
    significand = {2'b01, bits[51:29]};
    if (bits[28] && (bits[29] || bits[27:0] != 0)) significand = significand + 25'd1;  // to even
    exponent = bits[62:52] + {10'd0, significand[24]} - 11'd896;
    float32 = bits[62:52] < 11'd897 ? {bits[63], 31'd0}
            : {bits[63], exponent[7:0], significand[24] ? significand[23:1] : significand[22:0]};
  end
endfunction
