#include "indexpool/model/traffic.hpp"

namespace indexpool {

Traffic& Traffic::operator+=(const Traffic& other) {
  global_load += other.global_load;
  global_store += other.global_store;
  load_sectors += other.load_sectors;
  store_sectors += other.store_sectors;
  shared_load += other.shared_load;
  shared_store += other.shared_store;
  shared_wavefronts += other.shared_wavefronts;
  matrix_ops += other.matrix_ops;
  block_barriers += other.block_barriers;
  shuffles += other.shuffles;
  return *this;
}

}  // namespace indexpool
