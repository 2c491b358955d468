// A small array of multiply-accumulators: one accumulator per channel, one tap per clock, bias first. Verilog-2001.
module mac_array #(
    parameter CHANNELS = 16
) (
    input  wire                           clock,
    input  wire                           start,    // load the biases
    input  wire signed [15:0]             value,    // input code less its zero point
    input  wire        [16*CHANNELS-1:0]  weights,  // one per channel
    input  wire        [32*CHANNELS-1:0]  bias,
    output reg         [32*CHANNELS-1:0]  accumulators
);
  integer c;
  reg signed [31:0] weight;
  always @(posedge clock)
    for (c = 0; c < CHANNELS; c = c + 1) begin
      weight = $signed(weights[16*c +: 16]);
      if (start) accumulators[32*c +: 32] <= bias[32*c +: 32];
      else accumulators[32*c +: 32] <= $signed(accumulators[32*c +: 32]) + value * weight;
    end
endmodule
