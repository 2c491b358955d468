// Runs a model in TensorFlow Lite Micro: MODEL is a file; stdin holds the bytes of all inputs of one sample after
// another; stdout gets a line
// of JSON (name, sizes of the outputs), then the bytes of all outputs. tools/build_micro.py compiles it.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

constexpr size_t kArenaBytes = size_t{512} << 20;
alignas(16) uint8_t arena[kArenaBytes];  // its pages cost nothing until a model uses them

using Resolver = tflite::MicroMutableOpResolver<64>;

void Register(Resolver& to) {
  to.AddAbs();
  to.AddAdd();
  to.AddAveragePool2D();
  to.AddBatchMatMul();
  to.AddCast();
  to.AddConcatenation();
  to.AddConv2D();
  to.AddDepthToSpace();
  to.AddDepthwiseConv2D();
  to.AddDequantize();
  to.AddElu();
  to.AddEqual();
  to.AddExpandDims();
  to.AddFullyConnected();
  to.AddGather();
  to.AddGreater();
  to.AddGreaterEqual();
  to.AddHardSwish();
  to.AddL2Normalization();
  to.AddLeakyRelu();
  to.AddLess();
  to.AddLessEqual();
  to.AddLogSoftmax();
  to.AddLogistic();
  to.AddMaxPool2D();
  to.AddMaximum();
  to.AddMean();
  to.AddMinimum();
  to.AddMirrorPad();
  to.AddMul();
  to.AddNotEqual();
  to.AddPack();
  to.AddPad();
  to.AddPadV2();
  to.AddPrelu();
  to.AddQuantize();
  to.AddReduceMax();
  to.AddReduceMin();
  to.AddRelu();
  to.AddRelu6();
  to.AddReshape();
  to.AddResizeBilinear();
  to.AddResizeNearestNeighbor();
  to.AddShape();
  to.AddSlice();
  to.AddSoftmax();
  to.AddSpaceToDepth();
  to.AddSplit();
  to.AddSquaredDifference();
  to.AddSqueeze();
  to.AddStridedSlice();
  to.AddSub();
  to.AddSum();
  to.AddTanh();
  to.AddTranspose();
  to.AddTransposeConv();
  to.AddUnpack();
}

std::vector<uint8_t> FileBytes(const char* path) {
  std::vector<uint8_t> bytes;
  if (FILE* file = std::fopen(path, "rb")) {
    std::fseek(file, 0, SEEK_END);
    bytes.resize(std::ftell(file));
    std::rewind(file);
    if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) bytes.clear();
    std::fclose(file);
  }
  return bytes;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s MODEL\n", words[0]);
    return 2;
  }
  const std::vector<uint8_t> file = FileBytes(words[1]);
  if (file.empty()) {
    std::fprintf(stderr, "%s: cannot be read\n", words[1]);
    return 2;
  }
  Resolver resolver;
  Register(resolver);
  tflite::MicroInterpreter interpreter(tflite::GetModel(file.data()), resolver, arena, kArenaBytes);
  if (interpreter.AllocateTensors() != kTfLiteOk) return 3;
  std::printf("{\"name\": \"tflite-micro from source\", \"bytes\": [");
  for (size_t i = 0; i < interpreter.outputs_size(); ++i) {
    std::printf(i ? ", %zu" : "%zu", interpreter.output(i)->bytes);
  }
  std::puts("]}");
  std::fflush(stdout);
  for (;;) {
    for (size_t i = 0; i < interpreter.inputs_size(); ++i) {
      TfLiteTensor* tensor = interpreter.input(i);
      if (std::fread(tensor->data.raw, 1, tensor->bytes, stdin) != tensor->bytes) return 0;
    }
    if (interpreter.Invoke() != kTfLiteOk) return 4;
    for (size_t i = 0; i < interpreter.outputs_size(); ++i) {
      TfLiteTensor* tensor = interpreter.output(i);
      std::fwrite(tensor->data.raw, 1, tensor->bytes, stdout);
    }
    std::fflush(stdout);
  }
}
