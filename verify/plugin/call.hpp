// One operation of a plugin: called twice in a process of its own, and what came of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/verify/plugin/process.hpp"
#include "indexpool/verify/plugin/shared_memory.hpp"

namespace indexpool::verify::plugin {

struct Runner {
  std::filesystem::path worker;
  PluginLimits limits;
};

struct Called {
  // Set when there are no outputs to judge: it crashed, hung, refused, or gave an error.
  std::optional<Verdict> ended;
  // "process", "sizes", "written", "guards", "rerun", "threads".
  std::vector<Check> checks;
  std::vector<std::vector<std::byte>> outputs;  // of the first call; empty where not given
  std::string printed;                          // its last lines

  // Whether the outputs are whole, so that their values can be judged.
  bool judgeable() const;
};
Called call_plugin(const Request& request, const Runner& runner);

// What a plugin says about itself. `refused` says why it cannot be used.
struct Description {
  std::string name;
  std::uint32_t offered = 0;  // bit of each Operation
  std::int32_t accumulation = 0;
  std::optional<Verdict> refused;

  bool offers(Operation operation) const {
    return (offered >> static_cast<int>(operation) & 1u) != 0;
  }
};
Description describe_plugin(const std::string& library, const Runner& runner);

// Why the worker did not get to the end, or left something behind; empty: it did. Internal.
std::optional<Verdict> explain(const Request& request, const Control& control,
                               std::uint64_t shared_bytes, const Ending& ending,
                               const PluginLimits& limits);

}  // namespace indexpool::verify::plugin
