// Text from records into documents: names and reasons may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace indexpool::reports {

// Invalid UTF-8 and the control characters that XML 1.0 forbids become U+FFFD.
std::string printable(std::string_view text);

std::string escape_xml(std::string_view text);       // element content and quoted attributes
std::string escape_markdown(std::string_view text);  // one table cell: no markup, no line breaks
std::string escape_csv(std::string_view text);       // RFC 4180: quoted when it must be
std::string escape_dot(std::string_view text);       // inside a double-quoted Graphviz string

// At most `limit` bytes, cut between code points, with an ellipsis when something is missing.
std::string shortened(std::string_view text, std::size_t limit);

}  // namespace indexpool::reports
