#include "indexpool/model/record.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::reports {

void write_report(const std::filesystem::path& folder, const ReportInput& input) {
  const std::string dot = pipeline_dot(input.records);
  const std::string picture = svg_from_dot(dot);
  write_records(folder / "records.jsonl", input.records);
  write_text(folder / "pipeline.dot", dot);
  if (!picture.empty()) write_text(folder / "pipeline.svg", picture);
  write_text(folder / "junit.xml", junit(input));
  write_text(folder / "report.md", markdown(input));
  write_text(folder / "report.html", html(input));
}

}  // namespace indexpool::reports
