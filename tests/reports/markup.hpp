// A small, strict reader of HTML and XML: what a browser forgives, a test must not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace indexpool::reports {

// Empty when `text` is well-formed: tags balanced and nested, attributes quoted and unique, every
// '&' an entity, no raw '<' in text; else what is wrong and around where.
std::string markup_problem(std::string_view text);

// References that would be fetched: src, href, url(...), @import, and any address with a scheme.
std::vector<std::string> external_references(std::string_view text);

// The text of `path` under tests/reports/expected.
std::string expected_text(const std::string& name);

}  // namespace indexpool::reports
