#include "indexpool/verify/plugin/shared_object.hpp"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify::plugin {
namespace {

#if defined(__x86_64__)
constexpr int this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int this_machine = EM_AARCH64;
#else
constexpr int this_machine = EM_NONE;  // not compared
#endif

[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& found) {
  throw ConfigError(
      fmt::format("{}: {}; expected a shared object (g++ -shared -fPIC ..., see "
                  "indexpool/verify/plugin.h)",
                  path.string(), found));
}

}  // namespace

void require_shared_object(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw ConfigError(
        fmt::format("{}: no such file; expected a plugin, a shared object", path.string()));
  }
  if (!std::filesystem::is_regular_file(status)) refuse_file(path, "not a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(fmt::format("{}: cannot be read", path.string()));
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  const auto read = static_cast<std::size_t>(file.gcount());
  if (read < EI_NIDENT || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    refuse_file(path,
                fmt::format("not an ELF file ({} bytes read, none of its magic number)", read));
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64) refuse_file(path, "an ELF file of 32 bits");
  if (read < sizeof(header)) refuse_file(path, fmt::format("an ELF file cut off at byte {}", read));
  if (header.e_type != ET_DYN) {
    refuse_file(path, fmt::format("an ELF file of type {} ({})", header.e_type,
                                  header.e_type == ET_REL    ? "an object file"
                                  : header.e_type == ET_EXEC ? "a program"
                                                             : "neither program nor library"));
  }
  if (this_machine != EM_NONE && header.e_machine != this_machine) {
    refuse_file(path, fmt::format("an ELF file for another machine (number {}, this one is {})",
                                  header.e_machine, this_machine));
  }
}

}  // namespace indexpool::verify::plugin
