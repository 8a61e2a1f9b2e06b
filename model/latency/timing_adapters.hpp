// The readers, one definition each, and what they share. Internal to the layer.
#pragma once

#include <string>
#include <string_view>

#include "indexpool/model/latency/timing_table.hpp"

namespace indexpool {

extern const TimingAdapter generic_adapter;
extern const TimingAdapter gpu_stream_adapter, gpu_small_kernels_adapter, gpu_l2_cache_adapter,
    gpu_cache_adapter, gpu_latency_adapter;
extern const TimingAdapter llmcompass_matmul_adapter, llmcompass_rows_adapter, neusight_adapter,
    vidur_adapter;
extern const TimingAdapter aic_gemm_adapter, aic_logits_adapter, aic_topk_adapter,
    aic_attention_adapter;

inline std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// Name of the device file for a device as tables name it; "" when it is none of ours.
std::string device_file(std::string_view measured_on);

}  // namespace indexpool
