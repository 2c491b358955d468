// Compare mac_array.v with exported products: rows of a layer through the array, one tap per clock. Prints PASS or FAIL.
//   iverilog -g2005-sv -I vectors -o test examples/rtl/test_mac_array.v examples/rtl/mac_array.v && vvp test +vectors=vectors
module test_mac_array;
  `include "pointwise.vh"
  localparam integer R = POINTWISE_ROWS, T = POINTWISE_TAPS, C = POINTWISE_CHANNELS;
  reg [8*200-1:0] folder;
  reg signed [15:0] rows[0:R*T-1], weights[0:C*T-1];
  reg signed [31:0] bias[0:C-1], expected[0:R*C-1];
  reg clock = 0, start = 0;
  reg signed [15:0] value;
  reg [16*C-1:0] column;
  reg [32*C-1:0] biases;
  wire [32*C-1:0] accumulators;
  integer r, t, c, wrong;

  mac_array #(.CHANNELS(C)) dut (
      .clock(clock), .start(start), .value(value), .weights(column), .bias(biases), .accumulators(accumulators)
  );

  initial begin
    if (!$value$plusargs("vectors=%s", folder)) folder = ".";
    $readmemh({folder, "/pointwise_rows.hex"}, rows);
    $readmemh({folder, "/pointwise_weights.hex"}, weights);
    $readmemh({folder, "/pointwise_bias.hex"}, bias);
    $readmemh({folder, "/pointwise_accumulator.hex"}, expected);
    wrong = 0;
    for (c = 0; c < C; c = c + 1) biases[32*c +: 32] = bias[c];
    for (r = 0; r < R; r = r + 1) begin
      start = 1;
      #1 clock = 1; #1 clock = 0; start = 0;
      for (t = 0; t < T; t = t + 1) begin
        value = rows[r*T + t];
        for (c = 0; c < C; c = c + 1) column[16*c +: 16] = weights[c*T + t];
        #1 clock = 1; #1 clock = 0;
      end
      for (c = 0; c < C; c = c + 1)
        if (accumulators[32*c +: 32] !== expected[r*C + c]) wrong = wrong + 1;
    end
    if (wrong == 0 && R*C > 0) $display("PASS: %0d accumulators", R*C);
    else $display("FAIL: %0d of %0d accumulators", wrong, R*C);
    $finish;
  end
endmodule
