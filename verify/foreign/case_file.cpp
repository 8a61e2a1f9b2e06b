// A foreign case as a file and back, from one table of its tensors.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/case_indexer.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/verify/foreign/adapters.hpp"
#include "indexpool/verify/foreign/foreign.hpp"

namespace indexpool::verify {
namespace {

constexpr const char* paging_key = "paging";                // of the file's metadata
constexpr std::int64_t most_pages = std::int64_t{1} << 31;  // page numbers are i32

struct Extra {
  const char* name;
  Tensor& (*of)(ForeignCase& foreign);
  const char* meaning;
  bool scheduled;  // only when tokens don't arrive all at once
};
constexpr Extra extras[] = {
    {"block_table", [](ForeignCase& f) -> Tensor& { return f.paging.block_table; },
     "by sequence: pool p lies in page block_table[p / states_per_page]; -1 past the end", false},
    {"token_page_table", [](ForeignCase& f) -> Tensor& { return f.paging.token_page_table; },
     "by sequence: token t lies in page token_page_table[t / 64]; -1 past the end", false},
    {"slot_mapping", [](ForeignCase& f) -> Tensor& { return f.paging.slot_mapping; },
     "by token: page * states_per_page + state of the pool that it closes; -1 where it closes none",
     false},
    {"positions", [](ForeignCase& f) -> Tensor& { return f.paging.positions; },
     "by token: its position in its sequence", false},
    {"schedule_parts", [](ForeignCase& f) -> Tensor& { return f.schedule.parts; },
     "tokens in the order in which they arrive: round, phase (0 prefill, 1 decode), sequence, "
     "position of the first token, tokens offered, tokens kept (the others are rejected drafts), "
     "first staged row",
     true},
    {"staged_keys", [](ForeignCase& f) -> Tensor& { return f.schedule.keys; },
     "rows of keys as they arrive, rejected drafts among them; NaN between the parts", true},
    {"staged_gate_scores", [](ForeignCase& f) -> Tensor& { return f.schedule.gate_scores; },
     "rows of gate_scores as they arrive", true},
    {"staged_positions", [](ForeignCase& f) -> Tensor& { return f.schedule.positions; },
     "by staged row: its position in its sequence; -1 between the parts", true},
    {"staged_slot_mapping", [](ForeignCase& f) -> Tensor& { return f.schedule.slot_mapping; },
     "by staged row: slot of the pool that it closes, or -1", true},
};

[[noreturn]] void fail(const TensorFile& file, const char* name, const std::string& what) {
  throw ConfigError(fmt::format(R"({}: tensor "{}": {})", file.path.string(), name, what));
}

// Every page that a pool or token needs is a page, and no two sequences share one.
void check_table(const TensorFile& file, const char* name, const Tensor& table,
                 std::span<const std::int64_t> needed, std::int64_t pages) {
  std::set<std::int32_t> taken;
  const auto width = static_cast<std::size_t>(table.dim(1));
  for (std::size_t s = 0; s < needed.size(); ++s) {
    if (needed[s] > table.dim(1)) {
      fail(file, name,
           fmt::format("row {}: found {} columns, expected at least {}", s, table.dim(1),
                       needed[s]));
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(needed[s]); ++i) {
      const std::int32_t page = table.as<std::int32_t>()[s * width + i];
      if (page >= 0 && page < pages && taken.insert(page).second) continue;
      fail(file, name,
           fmt::format("row {}, column {}: found page {}, expected one of 0 to {} that nothing "
                       "else uses",
                       s, i, page, pages - 1));
    }
  }
}

std::vector<std::int64_t> pages_needed(std::span<const std::int64_t> tokens, std::int64_t kpool,
                                       std::int64_t per_page) {
  std::vector<std::int64_t> pages;
  for (const std::int64_t n : tokens) pages.push_back((n / kpool + per_page - 1) / per_page);
  return pages;
}

void read_paging(const TensorFile& file, ForeignCase& foreign) {
  const auto text = file.metadata.find(paging_key);
  if (text == file.metadata.end()) {
    throw ConfigError(file.path.string() +
                      R"(: the header's __metadata__ has no "paging"; expected a file that )"
                      "indexpool export wrote");
  }
  const JsonObject in =
      parse_json(text->second, file.path.string() + R"(: metadata "paging")")
          .object({"states_per_page", "pages", "token_pages", "reach", "seed", "about_ties"});
  const IndexerInputs& inputs = foreign.test_case.inputs;
  ForeignPaging& paging = foreign.paging;
  paging.states_per_page = in["states_per_page"].integer(1, most_pages);
  paging.pages = in["pages"].integer(1, most_pages);
  paging.token_pages = in["token_pages"].integer(1, most_pages);
  foreign.seed = in["seed"].unsigned_integer();
  foreign.about_ties = in["about_ties"].boolean();
  for (const JsonValue& reach : in["reach"].array()) {
    const std::size_t s = foreign.reach.size();
    if (s == inputs.sequences.size()) reach.fail("more entries than sequences");
    foreign.reach.push_back(reach.integer(inputs.sequences[s].length, most_pages));
  }
  if (foreign.reach.size() != inputs.sequences.size()) {
    in["reach"].fail("fewer entries than sequences");
  }
}

}  // namespace

std::vector<TensorNote> foreign_inputs(const ForeignCase& foreign) {
  std::vector<TensorNote> notes;
  for (const CaseTensor& tensor : indexer_case_tensors(foreign.test_case.inputs)) {
    notes.push_back({tensor.name, {tensor.dtype}, tensor.shape, tensor.meaning});
  }
  ForeignCase copy = foreign;  // tensors share their storage
  for (const Extra& extra : extras) {
    if (extra.scheduled && !foreign.schedule.present()) continue;
    notes.push_back({extra.name, {extra.of(copy).dtype()}, extra.of(copy).shape(), extra.meaning});
  }
  return notes;
}

TensorFile foreign_input_file(const ForeignCase& foreign) {
  TensorFile file = indexer_case_file(foreign.test_case);
  ForeignCase copy = foreign;
  for (const Extra& extra : extras) {
    if (extra.scheduled && !foreign.schedule.present()) continue;
    file.tensors[extra.name] = extra.of(copy);
  }
  const nlohmann::ordered_json paging = {{"states_per_page", foreign.paging.states_per_page},
                                         {"pages", foreign.paging.pages},
                                         {"token_pages", foreign.paging.token_pages},
                                         {"reach", foreign.reach},
                                         {"seed", foreign.seed},
                                         {"about_ties", foreign.about_ties}};
  file.metadata[paging_key] = paging.dump();
  return file;
}

ForeignCase read_foreign_case(const std::filesystem::path& path) {
  ForeignCase foreign;
  foreign.test_case = read_case(path);
  const TensorFile file = read_safetensors(path);
  read_paging(file, foreign);
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const auto sequences = static_cast<std::int64_t>(inputs.sequences.size());
  const bool scheduled = file.contains("schedule_parts");
  const auto expect = [&](const char* name, DType dtype, const Shape& shape) {
    file.require(name, dtype, shape);
  };
  expect("block_table", DType::i32, {sequences, -1});
  expect("token_page_table", DType::i32, {sequences, -1});
  expect("slot_mapping", DType::i64, {inputs.rows()});
  expect("positions", DType::i64, {inputs.rows()});
  if (scheduled) {
    const std::int64_t staged = file.require("staged_keys").dim(0);
    const std::int64_t dim = inputs.config.index_head_dim;
    expect("schedule_parts", DType::i64, {-1, 7});
    expect("staged_keys", inputs.mode.storage, {staged, dim});
    expect("staged_gate_scores", inputs.mode.storage, {staged, dim});
    expect("staged_positions", DType::i64, {staged});
    expect("staged_slot_mapping", DType::i64, {staged});
  }
  for (const Extra& extra : extras) {
    if (!extra.scheduled || scheduled) extra.of(foreign) = file.require(extra.name);
  }
  const ForeignPaging& paging = foreign.paging;
  check_table(file, "block_table", paging.block_table,
              pages_needed(foreign.reach, inputs.config.index_kpool, paging.states_per_page),
              paging.pages);
  check_table(file, "token_page_table", paging.token_page_table,
              pages_needed(foreign.reach, 1, token_page), paging.token_pages);
  return foreign;
}

}  // namespace indexpool::verify
