// Plugins that cannot be used at all, each for one reason, chosen when it is compiled (REASON).
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

#include "naive.hpp"

enum Reason {
  wrong_abi,
  no_table_symbol,
  null_table,
  wild_table,
  no_operation,
  wrong_accumulation,
  undefined_symbol,
  constructor_crashes,
  constructor_hangs,
  constructor_exits,
  abi_throws
};
constexpr Reason reason = REASON;

extern "C" int function_that_no_library_defines(int);

namespace {

struct Constructed {
  Constructed() {
    if (reason == constructor_crashes) std::raise(SIGSEGV);
    if (reason == constructor_exits) std::exit(5);
    while (reason == constructor_hangs) pause();
  }
};
const Constructed constructed;

}  // namespace

int indexpool_plugin_abi(void) {
  if constexpr (reason == undefined_symbol) return function_that_no_library_defines(1);
  if (reason == abi_throws) throw std::logic_error("not today");
  return reason == wrong_abi ? INDEXPOOL_PLUGIN_ABI + 41 : INDEXPOOL_PLUGIN_ABI;
}

#ifdef WITHOUT_TABLE
extern "C" const indexpool_plugin* misspelt_table(void) {
#else
const indexpool_plugin* indexpool_plugin_table(void) {
#endif
  static indexpool_plugin table{};
  if (reason == null_table) return nullptr;
  if (reason == wild_table) return reinterpret_cast<const indexpool_plugin*>(0x123450);
  if (reason != no_operation) table.topk = naive::topk;
  if (reason == wrong_accumulation) table.accumulation = 17;
  return &table;
}
