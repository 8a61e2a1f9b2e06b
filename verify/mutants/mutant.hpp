// The table of mutants: kernels and plans with one fault each, and which check must notice.
//
// A row names the class of the fault, the file that it is put in, the text that is replaced, the
// problems that bring it out and the check that must fail on one of them. Adding a mutant is adding
// a row to a file of table/ (and perhaps a file of problems/).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/problem.hpp"

namespace indexpool::verify {

struct Mutant {
  std::string id;           // unique, an identifier
  std::string fault;        // one of mutant_classes()
  std::string kernel;       // the kernel that has the fault, or "planner": kernels/plan.hpp
  std::string file;         // of kernels/, where the text below stands exactly once
  std::string find, with;   // what is replaced, and by what
  std::string problems;     // a file of problems/
  bool far = false;         // behind gigabytes (far_target.hpp)
  bool tight_ring = false;  // rings of index_kpool + drafts entries, no multiple of a pool
  std::string killed_by;    // a check of a verdict; "executor": the executor refused to go on
  std::string why;          // what goes wrong
  std::string race_at;     // text of the line where the thread sanitizer must see a race; may be ""
  std::string equivalent;  // why no check can notice, if none can; else ""
};

struct MutantClass {
  std::string_view name, what;
  bool must_be_complete = false;  // all of it must be killed
};
std::span<const MutantClass> mutant_classes();
std::span<const std::string_view> killing_checks();

// All rows, in the order of the files' names. ConfigError names file and pointer of a bad row: an
// unknown key, class, check or set of problems, an id that is there twice, nothing to replace.
std::vector<Mutant> mutant_table();
std::vector<Mutant> parse_mutants(std::string_view text, std::string_view where);
const Mutant& find_mutant(std::span<const Mutant> table, std::string_view id);  // with near names

std::vector<std::string> mutant_problem_names();
Suite mutant_problems(std::string_view name);

}  // namespace indexpool::verify
