// Other requantizers, for changes that tools/plant_changes.py plants in kernels of TensorFlow Lite Micro. Each takes an
// accumulator, a mantissa in Q31 and the exponent of the multiplier.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace planted {

inline int64_t High(int64_t x, int32_t mantissa, int shift) {  // half up, after a left shift
  return (x * (int64_t{1} << std::max(shift, 0)) * mantissa + (int64_t{1} << 30)) >> 31;
}

inline int32_t Once(int64_t x, int32_t mantissa, int shift) {  // one rounding, half up
  return (x * mantissa + (int64_t{1} << (30 - shift))) >> (31 - shift);
}

inline int32_t Floor(int64_t x, int32_t mantissa, int shift) {  // no rounding
  return (x * mantissa) >> (31 - shift);
}

inline int32_t FloorLast(int64_t x, int32_t mantissa, int shift) {  // half up to the high word, then no rounding
  return High(x, mantissa, shift) >> std::max(-shift, 0);
}

inline int32_t UpTwice(int64_t x, int32_t mantissa, int shift) {  // half up, twice
  const int right = std::max(-shift, 0);
  return (High(x, mantissa, shift) + (right ? int64_t{1} << (right - 1) : 0)) >> right;
}

inline int32_t Short(int64_t x, int32_t mantissa, int shift) {  // a mantissa of 15 bits, one rounding, half up
  const int64_t rounded = std::min<int64_t>((int64_t{mantissa} + (1 << 15)) >> 16, 0x7fff);
  return (x * rounded + (int64_t{1} << (14 - shift))) >> (15 - shift);
}

inline int32_t Floats(int64_t x, int32_t mantissa, int shift) {  // a product in float32, half to even
  return static_cast<int32_t>(std::nearbyintf(static_cast<float>(x) * std::ldexp(static_cast<float>(mantissa), shift - 31)));
}

template <int kBits>
inline int64_t Saturated(int64_t x) {
  const int64_t half = int64_t{1} << (kBits - 1);
  return std::min(std::max(x, -half), half - 1);
}

}  // namespace planted
