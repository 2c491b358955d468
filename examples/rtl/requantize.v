// Requantizer of TFLite's int8 kernels with two roundings: accumulator -> code. Combinational, Verilog-2001.
// Source of the arithmetic: LiteRT 2.3, common.cc MultiplyByQuantizedMultiplier (default build).
module requantize (
    input  wire signed [31:0] accumulator,  // with its bias
    input  wire signed [31:0] mantissa,     // Q31, in [2^30, 2^31)
    input  wire signed [7:0]  shift,        // to the left if above 0
    input  wire signed [31:0] zero_point,
    input  wire signed [31:0] low,
    input  wire signed [31:0] high,
    output wire signed [31:0] shifted,      // after the left shift; wraps
    output wire signed [31:0] high_word,    // product after the first rounding
    output wire signed [31:0] scaled,       // after the right shift
    output wire signed [31:0] code          // with zero point, clamped
);
  wire [5:0] left = (shift > 0) ? shift[5:0] : 6'd0;
  wire [5:0] right = (shift < 0) ? -shift : 6'd0;
  assign shifted = accumulator <<< left;

  wire signed [63:0] product = shifted * mantissa;
  wire signed [63:0] nudged = product + 64'sd1073741824;  // half of 2^31: rounds half up
  assign high_word = nudged >>> 31;

  wire signed [31:0] mask = (32'sd1 <<< right) - 32'sd1;
  wire signed [31:0] remainder = high_word & mask;
  wire signed [31:0] threshold = (mask >>> 1) + ((high_word < 0) ? 32'sd1 : 32'sd0);  // half away from zero
  assign scaled = (high_word >>> right) + ((remainder > threshold) ? 32'sd1 : 32'sd0);

  wire signed [31:0] moved = scaled + zero_point;
  assign code = (moved < low) ? low : (moved > high) ? high : moved;
endmodule
