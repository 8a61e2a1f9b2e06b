// What a fault does to memory. A new model is a function and a row.
//
// Besides flips of one and two bits: on GPUs fewer than 40 % of flip events are single bits, and
// many hit warp-aligned periodic addresses (arXiv 2605.04213); NVBitFI injects single bit, two
// bits, random value and zero value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "indexpool/verify/random.hpp"

namespace indexpool::verify::faults {

// A 32-bit word that a fault changed, by byte offset in its region.
struct Touched {
  std::size_t offset = 0;
  std::uint32_t before = 0;
};

struct FaultModel {
  std::string_view name, purpose;
  // Changes `region` (whole words) by draws of `random` from `index` on, at most draws_per_fault,
  // and adds every word it wrote to `touched`.
  void (*strike)(std::span<std::byte> region, const Random& random, std::int64_t index,
                 std::vector<Touched>& touched);
};
inline constexpr std::int64_t draws_per_fault = 8;

std::span<const FaultModel> fault_models();
const FaultModel& find_fault_model(std::string_view name);  // ConfigError with near names

// Puts back what strike() changed.
void undo(std::span<std::byte> region, std::vector<Touched>& touched);

std::uint32_t word_at(std::span<const std::byte> region, std::size_t offset);

}  // namespace indexpool::verify::faults
