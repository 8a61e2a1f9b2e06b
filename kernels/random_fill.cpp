#include "indexpool/kernels/random_fill.hpp"

#include <algorithm>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels {

void fill_on_host(std::uint32_t* to, std::int64_t words, const RandomFill& fill) {
  for (std::int64_t i = 0; i < words; ++i) to[i] = random_word(fill, fill.first_word + i);
}

void Target::fill_random(std::byte* to, std::int64_t bytes, const RandomFill& fill) {
  require(bytes % 4 == 0, "random memory comes in words of 4 bytes");
  constexpr std::int64_t piece = std::int64_t{1} << 20;  // words
  std::vector<std::uint32_t> words;
  RandomFill at = fill;
  for (std::int64_t done = 0; done < bytes / 4; done += piece) {
    words.resize(static_cast<std::size_t>(std::min(piece, bytes / 4 - done)));
    at.first_word = fill.first_word + done;
    fill_on_host(words.data(), std::ssize(words), at);
    upload(to + done * 4, words.data(), std::ssize(words) * 4);
  }
}

}  // namespace indexpool::kernels
