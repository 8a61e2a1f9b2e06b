// Names the user chose among known ones, and sizes the way people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace indexpool::cli {

// "unknown fill 'norml': did you mean normal?", or all known names when none is near.
std::string unknown_text(std::string_view what, const std::string& name,
                         const std::vector<std::string>& known);
// Throws ConfigError with the text above unless `name` is known.
void require_known(std::string_view what, const std::string& name,
                   const std::vector<std::string>& known);

// "4096", "4K", "1M" (powers of 1024), "1M,10M". Throws ConfigError naming `option`.
std::int64_t parse_size(std::string_view option, const std::string& text);
std::vector<std::int64_t> parse_sizes(std::string_view option, const std::string& text);

// `word` as a shell reads it back.
std::string shell_quoted(const std::string& word);

}  // namespace indexpool::cli
