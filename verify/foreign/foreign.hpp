// Certifies a kernel that ran elsewhere: a case goes out as named tensors, the kernel's outputs
// come back as named tensors, and each operation gets a Record with the same checks as our own
// kernels. How the outputs came about (files, a shared object) is the caller's business.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/model/safetensors.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// Tables for kernels that keep pools in pages. S sequences, N tokens.
struct ForeignPaging {
  std::int64_t states_per_page = 64;
  std::int64_t pages = 0, token_pages = 0;  // of all sequences, and a few of nobody's
  Tensor block_table;       // [S, W] i32: pool p of a sequence lies in page p / states_per_page
  Tensor token_page_table;  // [S, V] i32: token t lies in page t / 64
  Tensor slot_mapping;  // [N] i64: slot of the pool that a token closes, -1 where it closes none
  Tensor positions;     // [N] i64: of each row in its sequence
};

// How tokens arrive, when not all at once: staged rows, gaps and rejected drafts among them.
struct ForeignSchedule {
  Tensor parts;  // [R, 7] i64: round, phase (0 prefill, 1 decode), sequence, first position, tokens
                 // offered, tokens kept, first staged row
  Tensor keys, gate_scores;  // [M, D] staged rows; NaN in gaps, finite garbage in rejected drafts
  Tensor positions;          // [M] i64, -1 in gaps
  Tensor slot_mapping;       // [M] i64
  bool present() const { return !parts.empty(); }
};

struct ForeignCase {
  Case test_case;
  bool about_ties = false;  // as of a fill: rows need not be decidable
  std::uint64_t seed = 1;
  ForeignPaging paging;
  ForeignSchedule schedule;
  std::vector<std::int64_t> reach;  // by sequence: one past the last position ever offered
};

// Deals pages and stages tokens as options.schedule, states_per_page and seed say.
ForeignCase prepare_foreign(Case test_case, const Options& options, bool ties = false);
bool about_ties(const Problem& problem);  // of its fill

// A tensor that goes out or comes back.
struct TensorNote {
  std::string name;
  std::vector<DType> dtypes;  // any of them
  Shape shape;                // a negative size: at least its magnitude
  std::string meaning;
};
// The case as a file: the tensors of the golden format's stage "indexer", paging and schedule.
std::vector<TensorNote> foreign_inputs(const ForeignCase& foreign);
TensorFile foreign_input_file(const ForeignCase& foreign);
ForeignCase read_foreign_case(const std::filesystem::path& path);  // ConfigError

// What a kernel claims about its outputs. Names are those of the tables in adapters.hpp.
struct ForeignContract {
  std::string mode{};                // numeric mode; empty: the case's
  std::string layout{};              // of the cached pools; empty: by the tensors that came back
  std::string tail = "any";          // columns of the forced tail: any, fixed, batch, compacted
  std::string order = "any";         // of the selected pools in a row: any, ascending
  std::string accumulation = "f32";  // of the dot products
  bool deterministic = false;        // the lower pool wins a tie
  std::vector<std::string> operations{};  // judged ones; empty: all
  std::string implementation = "foreign";
};
// Throws ConfigError for an unknown name (with near ones), or a mode that takes other inputs.
void validate(const ForeignContract& contract, const ForeignCase& foreign);
std::string layout_names();  // "rows, split, planar, ..."

// What came back. `where` names it in errors and reasons: a file, "plugin libmine.so".
struct ForeignOutputs {
  std::string where;
  std::map<std::string, Tensor> tensors;
  std::string missing{};  // why nothing came back at all; empty: something did
};
// Outputs that a kernel may give for this case under this contract.
std::vector<TensorNote> foreign_outputs(const ForeignCase& foreign,
                                        const ForeignContract& contract);
// Throws ConfigError for a tensor that no output is called, or of another dtype or shape.
void validate(const ForeignOutputs& outputs, const ForeignCase& foreign,
              const ForeignContract& contract);

// One Record for each of pool, quantize_query (quantised modes), logits and topk; skipped, with the
// reason, where the outputs are missing. Validates contract and outputs first. Of options it uses
// seed, repeat and progress.
std::vector<Record> check_foreign(const ForeignCase& foreign, const ForeignOutputs& outputs,
                                  const ForeignContract& contract, const Options& options);

}  // namespace indexpool::verify
