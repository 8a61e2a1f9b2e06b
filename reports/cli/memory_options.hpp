// The options that say how a model is served, for predictions of its memory.
#pragma once

#include <cstdint>
#include <string>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/memory/plan.hpp"

namespace CLI {
class App;
}

namespace indexpool::cli {

struct MemoryOptions {
  std::string engine = "vllm", kv = "auto", index = "auto", parameters = "checkpoint";
  std::int64_t gpus = 0, tp = 0, cp = 1, pp = 1;  // 0: not given
  std::int64_t batch = 1, drafts = 0, prefill_chunk = 8192, logits_mb = 0;
  double utilization = 0.9;
  bool prefix_cache = false, unpooled = false;

  void declare(CLI::App& app);
  // Without tokens. ConfigError for names that are unknown and numbers that contradict each other.
  MemoryRequest parsed(const Architecture& architecture) const;
  Bytes usable(Bytes device_memory) const;
};

}  // namespace indexpool::cli
