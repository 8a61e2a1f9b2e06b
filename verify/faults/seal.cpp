#include "indexpool/verify/faults/seal.hpp"

#include "indexpool/verify/faults/crc32c.hpp"
#include "indexpool/verify/faults/form.hpp"

namespace indexpool::verify::faults {

Alarms check_pool(const PageShape& shape, const LinearLink& link, Bytes codes, Bytes scale,
                  const kernels::PoolChecksum& checksum) {
  Alarms alarms = 0;
  if (!link.holds(codes, scale, checksum)) alarms |= layer_linear;
  if (!form_holds(shape, codes, scale)) alarms |= layer_form;
  if (pair_of_pool(shape, codes, scale) != pair_of(checksum)) alarms |= layer_pair;
  return alarms;
}

void append(PageSeal& seal, const PageShape& shape, Bytes page,
            const kernels::PoolChecksum& checksum) {
  const std::int64_t state = seal.states++;
  IntegerPair pair{seal.sum, seal.weighted_sum};
  fold(pair, pair_of(checksum), shape, state);
  seal.sum = pair.sum;
  seal.weighted_sum = pair.weighted_sum;
  seal.crc = crc32c(codes_of(shape, page, state), seal.crc);
  seal.crc = crc32c(scale_of(shape, page, state), seal.crc);
}

Alarms check_page(const PageShape& shape, Bytes page, const PageSeal& seal) {
  if (seal.states > shape.states) return layer_crc | layer_pair;
  IntegerPair pair;
  std::uint32_t crc = 0;
  bool form = true;
  for (std::int64_t state = 0; state < seal.states; ++state) {
    const Bytes codes = codes_of(shape, page, state), scale = scale_of(shape, page, state);
    fold(pair, pair_of_pool(shape, codes, scale), shape, state);
    crc = crc32c(scale, crc32c(codes, crc));
    form = form && form_holds(shape, codes, scale);
  }
  Alarms alarms = form ? 0u : static_cast<Alarms>(layer_form);
  if (pair != IntegerPair{seal.sum, seal.weighted_sum}) alarms |= layer_pair;
  if (crc != seal.crc) alarms |= layer_crc;
  return alarms;
}

}  // namespace indexpool::verify::faults
