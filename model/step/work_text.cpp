// Shapes in words.
#include <fmt/format.h>

#include "indexpool/model/step/work.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

const char* name_of(ParameterFormat format) {
  switch (format) {
    case ParameterFormat::f32:
      return "f32";
    case ParameterFormat::bf16:
      return "bf16";
    case ParameterFormat::i64:
      return "i64";
    case ParameterFormat::fp8_block:
      return "fp8";
    case ParameterFormat::fp4_group:
      return "fp4";
  }
  return "";
}

struct Teller {
  const Size& size;
  const DeviceSpec& device;

  std::string units(ParameterFormat format) const {
    const char* dtype = matrix_dtype(format, device);
    return fmt::format("{} parameters, multiplied in {}", name_of(format), dtype);
  }
  std::string operator()(const MatrixProduct& p) const {
    return fmt::format("{}{} rows x {} x {}, {}",
                       p.copies > 1 ? fmt::format("{} products of ", p.copies) : "", size.rows(),
                       p.k, p.n, units(p.format));
  }
  std::string operator()(const ExpertProduct& p) const {
    const double touched = touched_experts(p.routed, p.per_token, size.rows());
    return fmt::format(
        "{} rows x {} experts a row: {:.4g} of {} touched if rows choose evenly{}, each {} x {}, "
        "{}",
        size.rows(), p.per_token, touched, p.routed,
        p.here < p.routed ? fmt::format(" ({} here)", p.here) : "", p.k, p.n, units(p.format));
  }
  std::string operator()(const Stream& s) const {
    std::string text = fmt::format("{} rows x ({} B read, {} B written)", size.rows(),
                                   s.read_per_row, s.write_per_row);
    if (s.parameters.value > 0) text += fmt::format(", {} B of parameters", s.parameters.value);
    if (s.state_per_sequence > 0) {
      text += fmt::format(", {} sequences x {} B of state read and written", size.sequences,
                          s.state_per_sequence);
    }
    if (s.launches > 1) text += fmt::format(", {} launches", s.launches);
    return text;
  }
  std::string operator()(const Attention& a) const {
    std::string text = fmt::format("{} rows x {} heads x ", size.rows(), a.heads);
    if (a.whole) {
      text += fmt::format("{:.6g} entries of {} B", mean_entries(a, size), a.entry_bytes);
      if (a.selected > 0) text += ", each row its own";
      if (a.context_ranks > 1) text += fmt::format(", evenly on {} ranks", a.context_ranks);
    }
    if (a.window > 0) {
      text += fmt::format("{}the last {} tokens of {} B", a.whole ? " and " : "", a.window,
                          a.window_entry_bytes);
    }
    return text;
  }
  std::string operator()(const Recurrence& r) const {
    return fmt::format("{} rows, {} sequences x {} heads x {} x {} x 4 B of state", size.rows(),
                       size.sequences, r.heads, r.key_dim, r.value_dim);
  }
  std::string operator()(const Collective& c) const {
    return fmt::format("{} over {} GPUs, {} rows x {} B", to_string(c.kind), c.ranks, size.rows(),
                       c.bytes_per_row);
  }
  std::string operator()(const IndexerKernels&) const { return "declared by the kernels"; }
};

}  // namespace

std::string text_of(const Shape& shape, const Size& size, const DeviceSpec& device) {
  return std::visit(Teller{size, device}, shape);
}

}  // namespace indexpool::step
