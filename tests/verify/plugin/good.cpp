// The plugin that is right.
#include "naive.hpp"

int indexpool_plugin_abi(void) { return INDEXPOOL_PLUGIN_ABI; }

const indexpool_plugin* indexpool_plugin_table(void) {
  static const indexpool_plugin table{
      "naive",     INDEXPOOL_ACCUMULATE_F32, naive::pool, naive::quantize_query, naive::logits,
      naive::topk, naive::pipeline};
  return &table;
}
