// A plugin that computes on a GPU: logits of f32 operands, a thread for each (row, pool). With
// BROKEN its kernel reads an address that does not exist; with ENDLESS it never ends.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "indexpool/verify/plugin.h"

namespace {

struct Operands {
  const float *queries, *head_weights, *pools;
  const indexpool_sequence* sequences;
  float* logits;
};

__global__ void logits_kernel(Operands in, indexpool_sizes z, float logit_scale,
                              std::int64_t stride) {
  const std::int64_t row = blockIdx.x;
  std::int64_t s = 0;
  while (row >= in.sequences[s].first_row + in.sequences[s].length) ++s;
  const std::int64_t visible = (row - in.sequences[s].first_row + 1) / z.index_kpool;
  for (std::int64_t p = threadIdx.x; p < visible; p += blockDim.x) {
    const float* key = in.pools + (in.sequences[s].first_pool + p) * z.index_head_dim;
    float sum = 0;
    for (int h = 0; h < z.index_n_heads; ++h) {
      const std::int64_t head = row * z.index_n_heads + h;
      float dot = 0;
      for (int c = 0; c < z.index_head_dim; ++c) {
        dot = fmaf(in.queries[head * z.index_head_dim + c], key[c], dot);
      }
      sum = fmaf(in.head_weights[head] * logit_scale, fmaxf(dot, 0.0f), sum);
    }
    in.logits[row * stride + p] = sum;
  }
#ifdef BROKEN
  in.logits[std::int64_t{1} << 46] = 1;
#endif
#ifdef ENDLESS
  for (volatile int on = 1; on == 1;) on = 1;
#endif
}

// Device copies, freed at the end of their scope. The first error stays.
struct Device {
  cudaError_t error = cudaSuccess;
  std::vector<void*> buffers;

  void note(cudaError_t result) {
    if (error == cudaSuccess) error = result;
  }
  template <class T>
  T* allocate(std::int64_t count) {
    void* buffer = nullptr;
    note(cudaMalloc(&buffer, static_cast<std::size_t>(count) * sizeof(T)));
    buffers.push_back(buffer);
    return static_cast<T*>(buffer);
  }
  template <class T>
  T* copy(const void* from, std::int64_t count) {
    T* to = allocate<T>(count);
    if (error == cudaSuccess) {
      note(cudaMemcpy(to, from, static_cast<std::size_t>(count) * sizeof(T),
                      cudaMemcpyHostToDevice));
    }
    return to;
  }
  ~Device() {
    for (void* buffer : buffers) cudaFree(buffer);
  }
};

int logits(const indexpool_logits_args* a) {
  const indexpool_sizes& z = *a->sizes;
  if (z.storage_dtype != INDEXPOOL_F32 || z.scale_rule != INDEXPOOL_SCALE_NONE) {
    return INDEXPOOL_UNSUPPORTED;
  }
  Device device;
  const std::int64_t heads = z.rows * z.index_n_heads, count = z.rows * a->logits_stride;
  Operands operands{};
  operands.queries = device.copy<float>(a->query_codes, heads * z.index_head_dim);
  operands.head_weights = device.copy<float>(a->head_weights, heads);
  operands.pools = device.copy<float>(a->pool_codes, z.pools * z.index_head_dim);
  operands.sequences = device.copy<indexpool_sequence>(z.sequences, z.sequence_count);
  operands.logits = device.allocate<float>(count);
  if (device.error == cudaSuccess) {
    logits_kernel<<<static_cast<unsigned>(z.rows), 64>>>(operands, z, a->logit_scale,
                                                         a->logits_stride);
    device.note(cudaGetLastError());
    device.note(cudaMemcpy(a->logits.data, operands.logits,
                           static_cast<std::size_t>(count) * sizeof(float),
                           cudaMemcpyDeviceToHost));
  }
  if (device.error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(device.error));
    return 2;
  }
  *a->logits.written = count;
  return INDEXPOOL_OK;
}

}  // namespace

int indexpool_plugin_abi(void) { return INDEXPOOL_PLUGIN_ABI; }

const indexpool_plugin* indexpool_plugin_table(void) {
  static indexpool_plugin table{};
  table.name = "cuda logits";
  table.logits = logits;
  return &table;
}
