// Where a call stands in the source, taken as a default argument. std::source_location would do,
// but clang 14 cannot use libstdc++'s.
#pragma once

namespace indexpool {

struct SourceLine {
  const char* file = "";
  int line = 0;

  static constexpr SourceLine current(const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr const char* file_name() const { return file; }
};

}  // namespace indexpool
