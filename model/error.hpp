// What can go wrong, by whose mistake it is.
#pragma once

#include <stdexcept>
#include <string>

#include "indexpool/model/source_line.hpp"

namespace indexpool {

// The user's mistake: a bad file, name or size. The text says where (file, JSON pointer or byte
// offset), what was found, what was expected and what to do. Exit code 2.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine's: no device, no toolkit, no permission. Exit code 3.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ours: an invariant that does not hold.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

// Throws InternalError with the caller's file and line when `condition` is false.
void require(bool condition, const char* what, SourceLine where = SourceLine::current());

}  // namespace indexpool
