#include "indexpool/model/latency/kernel_shape.hpp"

#include <fmt/format.h>

namespace indexpool {
namespace {

std::string text_of(const StreamShape& s) {
  return fmt::format("read={},written={},blocks={},threads={},repeated={},from={}", s.read.value,
                     s.written.value, s.blocks, s.threads_per_block, s.repeated,
                     to_string(s.timed_from));
}
std::string text_of(const GemmShape& s) { return fmt::format("m={},n={},k={}", s.m, s.n, s.k); }
std::string text_of(const CacheShape& s) {
  return fmt::format("sequences={},rows={},context={},heads={},key_heads={},topk={}", s.sequences,
                     s.rows_per_sequence, s.context, s.heads, s.key_heads, s.topk);
}

std::string text_of(const ChaseShape& s) { return fmt::format("footprint={}", s.footprint.value); }

}  // namespace

std::string_view to_string(TimedFrom from) {
  constexpr std::string_view names[] = {"stream", "graph", "kernel", "steady"};
  return names[static_cast<std::size_t>(from)];
}

std::string shape_text(const KernelShape& shape) {
  return std::visit([](const auto& s) { return text_of(s); }, shape);
}

}  // namespace indexpool
