// Compare requantize.v with exported vectors, stage by stage. Prints PASS, or the first difference of each stage.
//   iverilog -g2005-sv -I vectors -o test examples/rtl/test_requantize.v examples/rtl/requantize.v && vvp test +vectors=vectors
module test_requantize;
  `include "requantizer.vh"
  localparam integer N = REQUANTIZER_COUNT, C = REQUANTIZER_CHANNELS;
  reg [8*200-1:0] folder;
  reg signed [31:0] accumulators[0:N-1], after_left[0:N-1], highs[0:N-1], scaleds[0:N-1], codes[0:N-1];
  reg signed [31:0] mantissas[0:C-1];
  reg signed [7:0] shifts[0:C-1];
  reg signed [31:0] accumulator, mantissa;
  reg signed [7:0] shift;
  wire signed [31:0] shifted, high_word, scaled, code;
  integer i, wrong;

  requantize dut (
      .accumulator(accumulator), .mantissa(mantissa), .shift(shift),
      .zero_point(REQUANTIZER_ZERO_POINT), .low(REQUANTIZER_LOW), .high(REQUANTIZER_HIGH),
      .shifted(shifted), .high_word(high_word), .scaled(scaled), .code(code)
  );

  initial begin
    if (!$value$plusargs("vectors=%s", folder)) folder = ".";
    $readmemh({folder, "/requantizer_accumulator.hex"}, accumulators);
    $readmemh({folder, "/requantizer_mantissa.hex"}, mantissas);
    $readmemh({folder, "/requantizer_shift.hex"}, shifts);
    $readmemh({folder, "/requantizer_shifted.hex"}, after_left);
    $readmemh({folder, "/requantizer_high.hex"}, highs);
    $readmemh({folder, "/requantizer_scaled.hex"}, scaleds);
    $readmemh({folder, "/requantizer_codes.hex"}, codes);
    wrong = 0;
    for (i = 0; i < N; i = i + 1) begin
      accumulator = accumulators[i];
      mantissa = mantissas[i % C];
      shift = shifts[i % C];
      #1;
      if (shifted !== after_left[i] || high_word !== highs[i] || scaled !== scaleds[i] || code !== codes[i]) begin
        if (wrong == 0)
          $display("element %0d: shifted %0d/%0d, high %0d/%0d, scaled %0d/%0d, code %0d/%0d (design/expected)", i,
                   shifted, after_left[i], high_word, highs[i], scaled, scaleds[i], code, codes[i]);
        wrong = wrong + 1;
      end
    end
    if (wrong == 0 && N > 0) $display("PASS: %0d elements", N);
    else $display("FAIL: %0d of %0d elements", wrong, N);
    $finish;
  end
endmodule
