#include "indexpool/kernels/unplaced.hpp"

#include "indexpool/kernels/plan.hpp"

namespace indexpool::kernels {

PagedCache unplaced_cache(const Shape& shape, std::int64_t states_per_page) {
  PagedCache cache;
  cache.page_stride = page_layout(shape, states_per_page).page_bytes();
  cache.states_per_page = static_cast<std::int32_t>(states_per_page);
  return cache;
}

TailRing unplaced_tail(const Shape& shape, std::int64_t drafts) {
  TailRing tail;
  tail.ring = static_cast<std::int32_t>(ring_size(shape.config.index_kpool, drafts));
  tail.block_stride = 2 * tail.ring * shape.config.index_head_dim * info(shape.mode.storage).bytes;
  return tail;
}

}  // namespace indexpool::kernels
