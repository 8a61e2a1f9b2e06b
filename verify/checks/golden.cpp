// What another implementation answered.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {

Check check_golden_codes(const IndexerInputs& inputs, const Tensor& golden,
                         const StoredPools& stored, Mask mine) {
  Tally tally("golden");
  const auto row_bytes = static_cast<std::size_t>(golden.dim(1));
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    const auto p = static_cast<std::size_t>(pool);
    if (mine[p] == 0) continue;
    const std::byte* row = golden.data() + p * row_bytes;
    tally.compare(stored.raw[p].size() == row_bytes, [&] {
      return fmt::format("{}: {} bytes, golden {}", pool_name(inputs, pool), stored.raw[p].size(),
                         row_bytes);
    });
    for (std::size_t i = 0; i < std::min(row_bytes, stored.raw[p].size()); ++i) {
      tally.compare(stored.raw[p][i] == row[i], [&] {
        return fmt::format("{}, byte {} of codes and scale: {:#04x}, golden {:#04x}",
                           pool_name(inputs, pool), i, std::to_integer<int>(stored.raw[p][i]),
                           std::to_integer<int>(row[i]));
      });
    }
  }
  return std::move(tally).finish();
}

Check check_golden_queries(const Tensor* codes, const Tensor* scales, const QueryOutput& output) {
  Check check = Tally("golden").finish();
  if (codes != nullptr) {
    check = merge(check, check_same_bytes("golden", "query codes, here and golden",
                                          std::as_bytes(std::span(output.codes)), codes->raw()));
  }
  if (scales != nullptr) {
    check = merge(check, check_same_bytes("golden", "query scales, here and golden",
                                          bytes_of(output.scales), scales->raw()));
  }
  return check;
}

Check check_golden_steps(std::span<const reference::Agreement> agreements,
                         std::span<const std::string_view> steps) {
  Check check = Tally("golden").finish();
  for (const reference::Agreement& agreement : agreements) {
    if (std::ranges::find(steps, agreement.step) == steps.end()) continue;
    check.compared += agreement.compared;
    check.violations += agreement.outside;
    check.utilisation = std::max(check.utilisation, agreement.utilisation);
    if (agreement.outside == 0) continue;
    check.status = Status::failed;
    if (check.reason.empty()) {
      check.reason = fmt::format("{} of the case: {}", agreement.step, agreement.first_fault);
    }
  }
  return check;
}

}  // namespace indexpool::verify
