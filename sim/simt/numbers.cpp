// Conversions of device.hpp: the model's, which are bit-exact.
#include "indexpool/model/dtype.hpp"
#include "indexpool/sim/simt/device.hpp"

namespace indexpool::sim::simt {

float float_from_bf16(std::uint16_t bits) { return indexpool::float_from_bf16(bits); }
float float_from_f16(std::uint16_t bits) { return indexpool::float_from_f16(bits); }
std::uint16_t bf16_from_float(float value) { return indexpool::bf16_from_float(value); }
std::uint16_t f16_from_float(float value) { return indexpool::f16_from_float(value); }
std::uint8_t e4m3_from_float(float value) { return indexpool::e4m3_from_float(value); }
float float_from_e4m3(std::uint8_t code) { return indexpool::float_from_e4m3(code); }
std::int8_t i8_from_float(float value) { return indexpool::i8_from_float(value); }

}  // namespace indexpool::sim::simt
