// The CUDA side of random_fill.hpp: a grid that strides over the words.
#include <algorithm>

#include "indexpool/kernels/device_cuda.cuh"
#include "indexpool/kernels/random_fill.hpp"

namespace indexpool::kernels {
namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 4096;  // some per SM; each thread writes many words

__global__ void random_words(std::uint32_t* to, std::int64_t words, RandomFill fill) {
  const std::int64_t stride = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < words; i += stride) {
    to[i] = random_word(fill, fill.first_word + i);
  }
}

}  // namespace

void fill_on_device(std::uint32_t* to, std::int64_t words, const RandomFill& fill, void* stream) {
  if (words <= 0) return;
  const std::int64_t blocks = std::min(most_blocks, (words + threads - 1) / threads);
  random_words<<<static_cast<unsigned>(blocks), threads, 0, static_cast<cudaStream_t>(stream)>>>(
      to, words, fill);
  check_cuda(cudaGetLastError(), "filling memory with random words");
}

}  // namespace indexpool::kernels
