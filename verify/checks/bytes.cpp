// Checks that any operation can have: equal bytes, guards, traffic.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {

Check check_same_bytes(const std::string& name, const std::string& what,
                       std::span<const std::byte> first, std::span<const std::byte> second) {
  Tally tally(name);
  tally.compare(first.size() == second.size(), [&] {
    return fmt::format("{}: {} bytes and {} bytes", what, first.size(), second.size());
  });
  const std::size_t count = std::min(first.size(), second.size());
  for (std::size_t i = 0; i < count; ++i) {
    tally.compare(first[i] == second[i], [&] {
      return fmt::format("{}, byte {}: {:#04x} and {:#04x}", what, i,
                         std::to_integer<int>(first[i]), std::to_integer<int>(second[i]));
    });
  }
  return std::move(tally).finish();
}

Check check_guards(const std::string& report) {
  Tally tally("guards");
  tally.compare(report.empty(), [&] { return report; });
  return std::move(tally).finish();
}

Check check_traffic(const Traffic& declared, const Traffic& counted) {
  struct Row {
    const char* name;
    std::int64_t declared, counted;
  };
  const Row rows[] = {
      {"bytes loaded", declared.global_load.value, counted.global_load.value},
      {"bytes stored", declared.global_store.value, counted.global_store.value},
      {"sectors loaded", declared.load_sectors, counted.load_sectors},
      {"sectors stored", declared.store_sectors, counted.store_sectors},
      {"shared bytes loaded", declared.shared_load.value, counted.shared_load.value},
      {"shared bytes stored", declared.shared_store.value, counted.shared_store.value},
      {"shared-memory wavefronts", declared.shared_wavefronts, counted.shared_wavefronts},
      {"matrix operations", declared.matrix_ops, counted.matrix_ops},
      {"block barriers", declared.block_barriers, counted.block_barriers},
      {"shuffles", declared.shuffles, counted.shuffles},
  };
  Tally tally("traffic");
  for (const Row& row : rows) {
    tally.compare(row.declared == row.counted, [&] {
      return fmt::format("{}: {} declared, {} counted", row.name, row.declared, row.counted);
    });
  }
  return std::move(tally).finish();
}

Check merge(Check first, const Check& second) {
  if (first.violations == 0 && second.status != Status::passed) first.reason = second.reason;
  if (first.reason.empty()) first.reason = second.reason;
  first.status = worst(first.status, second.status);
  first.utilisation = std::max(first.utilisation, second.utilisation);
  first.compared += second.compared;
  first.violations += second.violations;
  return first;
}

}  // namespace indexpool::verify
