// What may come back, and whether what came back is of that kind.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/foreign/adapters.hpp"
#include "indexpool/verify/foreign/judge.hpp"

namespace indexpool::verify {
namespace {

std::int64_t most_visible(const IndexerInputs& inputs) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : inputs.sequences) longest = std::max(longest, sequence.length);
  return longest / inputs.config.index_kpool;
}

std::vector<const CacheAdapter*> possible_adapters(const ForeignContract& contract) {
  std::vector<const CacheAdapter*> adapters;
  for (const CacheAdapter& adapter : cache_adapters()) {
    const bool wanted =
        contract.layout.empty() ? !adapter.by_name : contract.layout == adapter.name;
    if (wanted) adapters.push_back(&adapter);
  }
  return adapters;
}

bool accepts(const TensorNote& note, const Tensor& tensor) {
  if (std::ranges::find(note.dtypes, tensor.dtype()) == note.dtypes.end()) return false;
  if (note.shape.size() != tensor.shape().size()) return false;
  for (std::size_t i = 0; i < note.shape.size(); ++i) {
    const std::int64_t wanted = note.shape[i], found = tensor.shape()[i];
    if (wanted < 0 ? found < -wanted : found != wanted) return false;
  }
  return true;
}

std::string wanted_text(const TensorNote& note) {
  std::vector<std::string> dtypes, sizes;
  for (const DType dtype : note.dtypes) dtypes.emplace_back(info(dtype).name);
  for (const std::int64_t size : note.shape) {
    sizes.push_back(size < 0 ? fmt::format("{} or more", -size) : fmt::format("{}", size));
  }
  return fmt::format("{} [{}]", fmt::join(dtypes, " or "), fmt::join(sizes, ", "));
}

}  // namespace

NumericMode mode_of(const ForeignContract& contract, const ForeignCase& foreign) {
  return contract.mode.empty() ? foreign.test_case.inputs.mode : numeric_mode(contract.mode);
}

std::vector<TensorNote> foreign_outputs(const ForeignCase& foreign,
                                        const ForeignContract& contract) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const NumericMode mode = mode_of(contract, foreign);
  const std::int64_t rows = inputs.rows(), heads = inputs.config.index_n_heads;
  const std::int64_t dim = inputs.config.index_head_dim;
  std::vector<TensorNote> notes{
      {"pooled",
       {mode.pooled},
       {first_pools(inputs).back(), dim},
       mode.hadamard ? "pooled keys before the Hadamard transform" : "pooled keys"}};
  for (const CacheAdapter* adapter : possible_adapters(contract)) {
    const auto more = cache_outputs(foreign, mode, *adapter);
    notes.insert(notes.end(), more.begin(), more.end());
  }
  if (mode.quantised()) {
    notes.push_back({"q_codes", {DType::u8, mode.cache}, {rows, heads, dim}, "query codes"});
    notes.push_back({"q_scales", {DType::f32}, {rows, heads}, "query scales"});
  }
  // At least one column, so that "or more" can be said of it.
  const std::int64_t visible = std::max<std::int64_t>(most_visible(inputs), 1);
  notes.push_back({"logits",
                   {DType::f32},
                   {rows, -visible},
                   "pool p of the row's own sequence in column p; what is not visible to the row "
                   "is not looked at"});
  notes.push_back({"selection",
                   {DType::i32, DType::i64},
                   {rows, -inputs.config.selection_width()},
                   "padded positions of the selected tokens (padding + position), -1 unused"});
  return notes;
}

void validate(const ForeignContract& contract, const ForeignCase& foreign) {
  const NumericMode mode = mode_of(contract, foreign);
  const NumericMode& own = foreign.test_case.inputs.mode;
  if (mode.storage != own.storage) {
    throw ConfigError(fmt::format("mode {} takes inputs in {}, but the case holds {} (mode {})",
                                  mode.name, info(mode.storage).name, info(own.storage).name,
                                  own.name));
  }
  const auto dim = static_cast<std::uint64_t>(foreign.test_case.inputs.config.index_head_dim);
  if (mode.hadamard && (dim & (dim - 1)) != 0) {
    throw ConfigError(
        fmt::format("mode {} rotates, but the head dim {} is no power of two", mode.name, dim));
  }
  if (!contract.layout.empty()) find_row(cache_adapters(), "layout", contract.layout);
  find_row(tail_adapters(), "tail", contract.tail);
  find_row(order_adapters(), "order", contract.order);
  find_row(accumulations(), "accumulation", contract.accumulation);
  std::vector<std::string> known;
  for (const Op op : judged_operations) known.emplace_back(to_string(op));
  for (const std::string& name : contract.operations) {
    if (std::ranges::find(known, name) == known.end()) {
      throw ConfigError(unknown_name("operation", name, known));
    }
  }
}

void validate(const ForeignOutputs& outputs, const ForeignCase& foreign,
              const ForeignContract& contract) {
  const std::vector<TensorNote> notes = foreign_outputs(foreign, contract);
  std::vector<std::string> known;
  for (const TensorNote& note : notes) {
    if (std::ranges::find(known, note.name) == known.end()) known.push_back(note.name);
  }
  for (const auto& [name, tensor] : outputs.tensors) {
    std::vector<std::string> wanted;
    bool accepted = false;
    for (const TensorNote& note : notes) {  // one name may have several layouts
      if (note.name != name) continue;
      wanted.push_back(wanted_text(note));
      accepted = accepted || accepts(note, tensor);
    }
    if (wanted.empty()) {
      throw ConfigError(fmt::format("{}: {}", outputs.where, unknown_name("tensor", name, known)));
    }
    if (accepted) continue;
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    throw ConfigError(fmt::format(R"({}: tensor "{}": found {} {}, expected {})", outputs.where,
                                  name, info(tensor.dtype()).name, to_string(tensor.shape()),
                                  fmt::join(wanted, ", or ")));
  }
}

}  // namespace indexpool::verify
