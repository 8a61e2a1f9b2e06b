#include "markup.hpp"

#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

namespace indexpool::reports {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_:.").find(c) != std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::string problem() {
    while (problem_.empty() && at_ < text_.size()) {
      if (text_[at_] == '<') {
        read_tag();
      } else {
        read_character('<');
      }
    }
    if (problem_.empty() && !open_.empty()) fail("never closed: " + open_.back());
    return problem_;
  }

 private:
  void fail(const std::string& what) {
    const std::size_t from = at_ < 60 ? 0 : at_ - 60;
    problem_ = what + " near: " + std::string(text_.substr(from, 120));
  }
  bool skip(std::string_view start, std::string_view end) {
    if (text_.substr(at_, start.size()) != start) return false;
    const std::size_t found = text_.find(end, at_ + start.size());
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
    if (found == std::string_view::npos) fail("no end of " + std::string(start));
    return true;
  }
  // One character of text or of an attribute value: '&' starts an entity.
  void read_character(char forbidden) {
    if (text_[at_] == forbidden) return fail("raw character");
    if (text_[at_] == '&') {
      const std::string_view rest = text_.substr(at_, 10);
      const std::size_t end = rest.find(';');
      static const std::set<std::string_view> entities = {"&amp", "&lt",   "&gt", "&quot",
                                                          "&#39", "&#160", "&#45"};
      if (end == std::string_view::npos || !entities.contains(rest.substr(0, end))) {
        return fail("'&' without an entity");
      }
    }
    ++at_;
  }
  std::string read_name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  void read_attribute(std::set<std::string>& seen) {
    const std::string name = read_name();
    if (name.empty()) return fail("expected an attribute");
    if (!seen.insert(name).second) return fail("attribute twice: " + name);
    if (text_.substr(at_, 2) != "=\"") return fail("attribute without a quoted value: " + name);
    at_ += 2;
    while (problem_.empty() && at_ < text_.size() && text_[at_] != '"') read_character('<');
    ++at_;
  }
  void read_tag() {
    if (skip("<!--", "-->") || skip("<?", "?>") || skip("<!DOCTYPE", ">")) return;
    const bool closing = text_.substr(at_, 2) == "</";
    at_ += closing ? 2 : 1;
    const std::string name = read_name();
    if (name.empty()) return fail("'<' without a tag name");
    std::set<std::string> seen;
    for (skip_space();
         problem_.empty() && at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/';
         skip_space()) {
      read_attribute(seen);
    }
    const bool empty = text_.substr(at_, 2) == "/>";
    if (!empty && text_.substr(at_, 1) != ">") return fail("tag without an end");
    at_ += empty ? 2 : 1;
    if (closing) {
      if (open_.empty() || open_.back() != name) return fail("closes what is not open: " + name);
      open_.pop_back();
    } else if (!empty) {
      open_.push_back(name);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  std::string problem_;
};

}  // namespace

std::string markup_problem(std::string_view text) { return Reader(text).problem(); }

std::vector<std::string> external_references(std::string_view text) {
  std::vector<std::string> found;
  for (const std::string_view sign : {"src=", "href=", "url(", "@import",
                                      "http:", "https:", "//www", "<script", "<link", "<iframe"}) {
    for (std::size_t at = text.find(sign); at != std::string_view::npos;
         at = text.find(sign, at + 1)) {
      found.emplace_back(text.substr(at, 60));
    }
  }
  return found;
}

std::string expected_text(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(INDEXPOOL_TEST_DATA "/reports/expected/" + name, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace indexpool::reports
