#include "indexpool/model/error.hpp"

namespace indexpool {

void require(bool condition, const char* what, SourceLine where) {
  if (condition) return;
  throw InternalError(std::string(where.file_name()) + ":" + std::to_string(where.line) + ": " +
                      what);
}

}  // namespace indexpool
