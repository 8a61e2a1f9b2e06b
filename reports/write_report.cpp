#include "indexpool/model/record.hpp"
#include "indexpool/reports/hierarchy.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::reports {
namespace {

void write_graph(const std::filesystem::path& folder, const std::string& name,
                 const std::string& dot) {
  if (dot.empty()) return;
  const std::string picture = svg_from_dot(dot);
  write_text(folder / (name + ".dot"), dot);
  if (!picture.empty()) write_text(folder / (name + ".svg"), picture);
}

}  // namespace

void write_report(const std::filesystem::path& folder, const ReportInput& input) {
  write_records(folder / "records.jsonl", input.records);
  write_graph(folder, "pipeline", pipeline_dot(input.records));
  write_graph(folder, "hierarchy", hierarchy_dot(input.records));
  write_text(folder / "junit.xml", junit(input));
  write_text(folder / "report.md", markdown(input));
  write_text(folder / "report.html", html(input));
}

}  // namespace indexpool::reports
