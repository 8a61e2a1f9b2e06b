#include "indexpool/model/latency/kernel_form.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/forms.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {

std::string_view to_string(Resource resource) {
  constexpr std::string_view names[] = {"launch", "HBM", "L2", "compute", "serial"};
  return names[static_cast<std::size_t>(resource)];
}

Resource KernelTime::bound_by() const {
  const auto longest = std::max_element(part.begin(), part.end());
  return static_cast<Resource>(longest - part.begin());
}

double overlapped(double a, double b, double c, double d) {
  const double top = std::max({a, b, c, d});
  if (top <= 0) return 0;
  const auto fourth = [top](double x) {
    const double square = (x / top) * (x / top);
    return square * square;
  };
  return top * std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c) + fourth(d)));
}

EntryCounts entry_counts(const CacheShape& shape) {
  // Whole entries only.
  const std::int64_t most = (shape.context + shape.rows_per_sequence) / shape.tokens_per_entry;
  const std::int64_t least = (shape.context + 1) / shape.tokens_per_entry;
  return {static_cast<double>(most), static_cast<double>(least),
          static_cast<double>(shape.sequences) * static_cast<double>(shape.rows_per_sequence)};
}

std::span<const KernelForm> kernel_forms() {
  static const KernelForm forms[] = {
      stream_form,       host_timed_form,       tile_gemm_form,         paged_logits_form,
      row_topk_form,     decode_attention_form, prefill_attention_form, cached_read_form,
      pointer_chase_form};
  return forms;
}

const KernelForm& kernel_form(std::string_view name) {
  std::vector<std::string> known;
  for (const KernelForm& form : kernel_forms()) {
    if (form.name == name) return form;
    known.emplace_back(form.name);
  }
  throw ConfigError(fmt::format("unknown form \"{}\"{} (known: {})", name,
                                did_you_mean(name, known), fmt::join(known, ", ")));
}

}  // namespace indexpool
