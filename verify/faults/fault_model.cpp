#include "indexpool/verify/faults/fault_model.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr std::int64_t lanes = 32;

std::int64_t words_of(std::span<const std::byte> region) {
  return static_cast<std::int64_t>(region.size() / 4);
}

void write_word(std::span<std::byte> region, std::int64_t word, std::uint32_t value,
                std::vector<Touched>& touched) {
  const auto offset = static_cast<std::size_t>(word) * 4;
  touched.push_back({offset, word_at(region, offset)});
  std::memcpy(region.data() + offset, &value, sizeof(value));
}

void flip(std::span<std::byte> region, std::int64_t word, std::uint32_t bits,
          std::vector<Touched>& touched) {
  const auto offset = static_cast<std::size_t>(word) * 4;
  write_word(region, word, word_at(region, offset) ^ bits, touched);
}

std::uint32_t bit(std::int64_t i) { return std::uint32_t{1} << i; }

void single(std::span<std::byte> region, const Random& random, std::int64_t index,
            std::vector<Touched>& touched) {
  const std::int64_t word = random.integer(index, 0, words_of(region) - 1);
  flip(region, word, bit(random.integer(index + 1, 0, 31)), touched);
}

void two_bits(std::span<std::byte> region, const Random& random, std::int64_t index,
              std::vector<Touched>& touched) {
  const std::int64_t word = random.integer(index, 0, words_of(region) - 1);
  const std::int64_t first = random.integer(index + 1, 0, 31);
  const std::int64_t second = (first + random.integer(index + 2, 1, 31)) % 32;
  flip(region, word, bit(first) | bit(second), touched);
}

void random_word(std::span<std::byte> region, const Random& random, std::int64_t index,
                 std::vector<Touched>& touched) {
  const std::int64_t word = random.integer(index, 0, words_of(region) - 1);
  write_word(region, word, static_cast<std::uint32_t>(random.bits(index + 1) >> 32), touched);
}

void zero_word(std::span<std::byte> region, const Random& random, std::int64_t index,
               std::vector<Touched>& touched) {
  write_word(region, random.integer(index, 0, words_of(region) - 1), 0, touched);
}

// Lane l of a warp strikes word tile * 32 * period + l * period + offset: the same bit in each. The
// period is a power of two of words that leaves room for 32 lanes; fewer lanes where there is none.
void stripe(std::span<std::byte> region, const Random& random, std::int64_t index,
            std::vector<Touched>& touched) {
  const std::int64_t words = words_of(region), active = std::min(lanes, words);
  std::int64_t doublings = 0;
  while ((active << (doublings + 1)) <= words) ++doublings;
  const std::int64_t period = std::int64_t{1} << random.integer(index, 0, doublings);
  const std::int64_t tile = random.integer(index + 1, 0, words / (active * period) - 1);
  const std::int64_t offset = random.integer(index + 2, 0, period - 1);
  const std::uint32_t bits = bit(random.integer(index + 3, 0, 31));
  for (std::int64_t lane = 0; lane < active; ++lane) {
    flip(region, (tile * active + lane) * period + offset, bits, touched);
  }
}

constexpr FaultModel table[] = {
    {"single", "one bit of a word", single},
    {"double", "two bits of one word", two_bits},
    {"random_word", "a 32-bit word becomes any value", random_word},
    {"zero", "a 32-bit word becomes 0", zero_word},
    {"stripe", "the same bit in 32 words, one per lane, at a power-of-two period", stripe},
};

}  // namespace

std::span<const FaultModel> fault_models() { return table; }

const FaultModel& find_fault_model(std::string_view name) {
  std::vector<std::string> known;
  for (const FaultModel& model : table) {
    if (model.name == name) return model;
    known.emplace_back(model.name);
  }
  const std::vector<std::string> near = near_names(name, known);
  throw ConfigError(fmt::format("there is no fault model '{}'; {}: {}", name,
                                near.empty() ? "the models are" : "near names",
                                fmt::join(near.empty() ? known : near, ", ")));
}

void undo(std::span<std::byte> region, std::vector<Touched>& touched) {
  for (; !touched.empty(); touched.pop_back()) {
    std::memcpy(region.data() + touched.back().offset, &touched.back().before, 4);
  }
}

std::uint32_t word_at(std::span<const std::byte> region, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, region.data() + offset, sizeof(word));
  return word;
}

}  // namespace indexpool::verify::faults
