// From the control block to the structs of the public header.
#pragma once

#include <functional>

#include "indexpool/verify/plugin/protocol.hpp"

namespace indexpool::verify::plugin {

// One call's arguments: of the operation's struct only the one that is called is read.
struct Arguments {
  indexpool_sizes sizes = {};
  std::int64_t written[most_outputs] = {};  // -1 until the plugin says
  union {
    indexpool_pool_args pool;
    indexpool_quantize_query_args quantize_query;
    indexpool_logits_args logits;
    indexpool_topk_args topk;
    indexpool_pipeline_args pipeline;
  };
  Arguments() : pool{} {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
};

// `address` gives where a segment's data lies in this process; a segment of no bytes that the mode
// does not have is a null pointer.
void fill_arguments(const Control& control, int call,
                    const std::function<void*(const Segment&)>& address, Arguments& arguments);

std::uint32_t offered_operations(const indexpool_plugin& plugin);  // bit of each Operation
int call_operation(const indexpool_plugin& plugin, Operation operation, const Arguments& arguments);

}  // namespace indexpool::verify::plugin
