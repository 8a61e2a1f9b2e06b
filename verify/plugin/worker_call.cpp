#include "indexpool/verify/plugin/worker_call.hpp"

#include <algorithm>

namespace indexpool::verify::plugin {
namespace {

// Segments by their place in the struct of the operation.
struct Memory {
  const Control& control;
  int call;
  const std::function<void*(const Segment&)>& address;
  Arguments& arguments;

  // A buffer without elements still has an address; one that the mode lacks was never laid out.
  void* pointer(const Segment& segment) const {
    return segment.end == 0 ? nullptr : address(segment);
  }
  template <class T>
  const T* input(int index) const {
    return static_cast<const T*>(pointer(control.inputs[index]));
  }
  indexpool_output output(int index) const {
    const Segment& segment = control.outputs[call][index];
    return {pointer(segment), segment.elements, &arguments.written[index]};
  }
};

void fill_pool(const Memory& memory, indexpool_pool_args& args) {
  args = {&memory.arguments.sizes, memory.input<void>(1), memory.input<void>(2),
          memory.input<float>(3),  memory.output(0),      memory.output(1)};
}

void fill_quantize_query(const Memory& memory, indexpool_quantize_query_args& args) {
  args = {&memory.arguments.sizes, memory.input<void>(1), memory.output(0), memory.output(1)};
}

void fill_logits(const Memory& memory, indexpool_logits_args& args) {
  args = {&memory.arguments.sizes, memory.input<void>(1),        memory.input<float>(2),
          memory.input<float>(3),  memory.control.logit_scale,   memory.input<void>(4),
          memory.input<float>(5),  memory.control.logits_stride, memory.output(0)};
}

void fill_topk(const Memory& memory, indexpool_topk_args& args) {
  args = {&memory.arguments.sizes, memory.input<float>(1), memory.control.logits_stride,
          memory.output(0)};
}

void fill_pipeline(const Memory& memory, indexpool_pipeline_args& args) {
  args = {&memory.arguments.sizes,    memory.input<void>(1),
          memory.input<void>(2),      memory.input<float>(3),
          memory.input<void>(4),      memory.input<float>(5),
          memory.control.logit_scale, memory.control.logits_stride,
          memory.output(0),           memory.output(1),
          memory.output(2),           memory.output(3),
          memory.output(4),           memory.output(5)};
}

}  // namespace

void fill_arguments(const Control& control, int call,
                    const std::function<void*(const Segment&)>& address, Arguments& arguments) {
  const Memory memory{control, call, address, arguments};
  arguments.sizes = control.sizes;
  arguments.sizes.sequences = memory.input<indexpool_sequence>(0);
  std::fill(std::begin(arguments.written), std::end(arguments.written), -1);
  switch (control.operation) {
    case Operation::none:
      return;
    case Operation::pool:
      return fill_pool(memory, arguments.pool);
    case Operation::quantize_query:
      return fill_quantize_query(memory, arguments.quantize_query);
    case Operation::logits:
      return fill_logits(memory, arguments.logits);
    case Operation::topk:
      return fill_topk(memory, arguments.topk);
    case Operation::pipeline:
      return fill_pipeline(memory, arguments.pipeline);
  }
}

std::uint32_t offered_operations(const indexpool_plugin& plugin) {
  std::uint32_t offered = 0;
  const auto offer = [&](Operation operation, bool present) {
    if (present) offered |= 1u << static_cast<int>(operation);
  };
  offer(Operation::pool, plugin.pool != nullptr);
  offer(Operation::quantize_query, plugin.quantize_query != nullptr);
  offer(Operation::logits, plugin.logits != nullptr);
  offer(Operation::topk, plugin.topk != nullptr);
  offer(Operation::pipeline, plugin.pipeline != nullptr);
  return offered;
}

int call_operation(const indexpool_plugin& plugin, Operation operation,
                   const Arguments& arguments) {
  switch (operation) {
    case Operation::none:
      break;
    case Operation::pool:
      return plugin.pool(&arguments.pool);
    case Operation::quantize_query:
      return plugin.quantize_query(&arguments.quantize_query);
    case Operation::logits:
      return plugin.logits(&arguments.logits);
    case Operation::topk:
      return plugin.topk(&arguments.topk);
    case Operation::pipeline:
      return plugin.pipeline(&arguments.pipeline);
  }
  return INDEXPOOL_OK;
}

}  // namespace indexpool::verify::plugin
