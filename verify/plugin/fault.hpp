// A faulting address in terms of the buffers of a call.
#pragma once

#include <cstdint>
#include <string>

#include "indexpool/verify/plugin/shared_memory.hpp"

namespace indexpool::verify::plugin {

std::string count_bytes(std::uint64_t count);  // "1 byte", "12 bytes"

// "wrote 64 bytes past the end of output `selection` (3420 bytes)", from what the worker's signal
// handler noted.
std::string describe_fault(const Request& request, const Control& control,
                           std::uint64_t shared_bytes);

}  // namespace indexpool::verify::plugin
