// A plain implementation of every operation, for a plugin that is right. Written from the
// description in verify/plugin.h alone: nothing of ours is included or linked.
#pragma once

#include "indexpool/verify/plugin.h"

namespace naive {

int pool(const indexpool_pool_args* args);
int quantize_query(const indexpool_quantize_query_args* args);
int logits(const indexpool_logits_args* args);
int topk(const indexpool_topk_args* args);
int pipeline(const indexpool_pipeline_args* args);

}  // namespace naive
