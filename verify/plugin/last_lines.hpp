// The end of what a process printed, however much it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace indexpool::verify::plugin {

// `text` with '?' for whatever is not printable ASCII: it comes from a process that may have gone
// astray, and ends up in JSON and on terminals.
std::string printable(std::string_view text);

class LastLines {
 public:
  void add(std::string_view text);
  std::int64_t bytes() const { return bytes_; }
  // The last lines, joined by " | ", printable.
  std::string text() const;

 private:
  std::string kept_;
  std::int64_t bytes_ = 0;
};

}  // namespace indexpool::verify::plugin
