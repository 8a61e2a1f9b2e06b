#include "indexpool/model/step/work.hpp"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {

const char* to_string(Phase phase) { return phase == Phase::decode ? "decode" : "prefill"; }

Bytes whole_bytes(double bytes, const char* what) {
  constexpr double limit = 0x1p58;
  if (!(bytes < limit)) {
    throw ConfigError(fmt::format(
        "the {} of one operation are {:.3g}, beyond 2^58; take fewer tokens or sequences", what,
        bytes));
  }
  return Bytes(std::llround(bytes));
}

const char* matrix_dtype(ParameterFormat format, const DeviceSpec& device) {
  const bool small = format == ParameterFormat::fp8_block || format == ParameterFormat::fp4_group;
  return small && device.matrix_flop_per_s.contains("e4m3") ? "e4m3" : "bf16";
}

std::int64_t input_bytes(const char* dtype) {
  return std::string_view(dtype) == "e4m3" ? 1 : bf16_bytes;
}

Chain start_chain(std::int64_t launches) {
  Chain chain;
  chain.first_loads = chain.loads = real(launches);
  return chain;
}

Work work_of(const Stream& stream, const Size& size) {
  const double rows = real(size.rows());
  const double state = real(size.sequences) * real(stream.state_per_sequence);
  Work work;
  work.unique_read = whole_bytes(
      rows * real(stream.read_per_row) + real(stream.parameters.value) + state, "bytes read");
  work.unique_write = whole_bytes(rows * real(stream.write_per_row) + state, "bytes written");
  work.traffic.global_load = work.unique_read;
  work.traffic.global_store = work.unique_write;
  work.f32_flop = Flop(rows * real(stream.flop_per_row));
  work.launches = stream.launches;
  work.chain = start_chain(stream.launches);
  return work;
}

ReadBytes read_bytes(const Shape& shape, const Size& size) {
  struct Reader {
    const Size& size;
    ReadBytes operator()(const MatrixProduct& each) const { return {each.parameters, {}}; }
    ReadBytes operator()(const ExpertProduct& each) const {
      const double touched = touched_experts(each.routed, each.per_token, size.rows()) *
                             real(each.here) / real(each.routed);
      return {whole_bytes(touched * real(each.parameters.value), "bytes of experts"), {}};
    }
    ReadBytes operator()(const Stream& each) const {
      return {each.parameters,
              whole_bytes(real(size.sequences) * real(each.state_per_sequence), "bytes of states")};
    }
    ReadBytes operator()(const Attention& each) const {
      return {each.parameters, cache_bytes(each, size)};
    }
    ReadBytes operator()(const Recurrence& each) const {
      return {each.parameters,
              whole_bytes(real(size.sequences) * real(each.state_bytes), "bytes of states")};
    }
    ReadBytes operator()(const Collective&) const { return {}; }
    ReadBytes operator()(const IndexerKernels&) const { return {}; }  // the caller knows
  };
  return std::visit(Reader{size}, shape);
}

}  // namespace indexpool::step
