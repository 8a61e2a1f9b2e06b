// Whether a file can be a plugin at all, before anything is started.
#pragma once

#include <filesystem>

namespace indexpool::verify::plugin {

// Throws ConfigError saying what was found: no such file, a folder, not ELF, 32 bits, another
// machine's, not a shared object.
void require_shared_object(const std::filesystem::path& path);

}  // namespace indexpool::verify::plugin
