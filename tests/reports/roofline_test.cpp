#include "indexpool/reports/roofline.hpp"

#include <cmath>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

struct Mark {
  std::string kind;
  double x, y, flop, bytes, seconds;
};

std::vector<Mark> marks_of(const std::string& svg) {
  static const std::regex mark(
      R"re(<circle class="(dot|ring wide) s[1-6]" cx="([0-9.-]+)" cy="([0-9.-]+)" r="5" )re"
      R"re(data-flop="([^"]+)" data-bytes="([^"]+)" data-seconds="([^"]+)">)re");
  std::vector<Mark> marks;
  for (std::sregex_iterator at(svg.begin(), svg.end(), mark), end; at != end; ++at) {
    marks.push_back({(*at)[1], std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4]),
                     std::stod((*at)[5]), std::stod((*at)[6])});
  }
  return marks;
}

// The level lines' heights by their rate.
double height_of(const std::string& svg, double rate) {
  static const std::regex line(
      R"re(<line class="ceiling" data-rate="([^"]+)" x1="[^"]+" y1="([^"]+)")re");
  for (std::sregex_iterator at(svg.begin(), svg.end(), line), end; at != end; ++at) {
    if (std::stod((*at)[1]) == rate) return std::stod((*at)[2]);
  }
  return std::nan("");
}

std::vector<Record> computing_records() {
  std::vector<Record> records = passed_records();
  for (Record& record : records) {
    record.values["predicted_matrix_flop"] = 0;
    record.values["predicted_f32_flop"] = record.op == "topk" ? 0 : 1e6;
  }
  records[3].values["predicted_matrix_flop"] = 2.1e9;
  return records;
}

TEST(Roofline, PointsAreThoseOfTheRecords) {
  const std::vector<RooflinePoint> points = roofline_points(computing_records(), "a100-sxm4-80gb");
  ASSERT_EQ(points.size(), 5u);
  EXPECT_EQ(points[3].kernel, "logits_mma");
  EXPECT_EQ(points[3].what, "logits, 1M tokens");
  EXPECT_DOUBLE_EQ(points[3].flop, 2.101e9);
  EXPECT_DOUBLE_EQ(points[3].bytes, 35.7e6);
  EXPECT_DOUBLE_EQ(points[3].predicted, 22.4e-6);
  EXPECT_EQ(points[3].measured, 0);
  EXPECT_TRUE(roofline_points(computing_records(), "h200-sxm").empty());
  EXPECT_TRUE(roofline_points(passed_records(), "a100-sxm4-80gb").empty());  // work not known
}

TEST(Roofline, AMeasurementBelongsToAPredictionOfTheRecordsOwnProblemOnly) {
  std::vector<Record> records = computing_records();
  records.resize(2);
  for (Record& record : records) {
    record.measurement = Measurement{Seconds(30e-6), Seconds(29e-6), Seconds(31e-6), 100, "", ""};
  }
  records[1].values.erase("predicted_matrix_flop");
  records[1].values["work_matrix_flop"] = 0;
  records[1].values["work_f32_flop"] = 16e3;
  const std::vector<RooflinePoint> points = roofline_points(records, "a100-sxm4-80gb");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].measured, 0);
  EXPECT_DOUBLE_EQ(points[1].measured, 30e-6);
  EXPECT_DOUBLE_EQ(points[1].flop, 16e3);
  EXPECT_DOUBLE_EQ(points[1].bytes, 2700);
  // Of a warm run hardly anything reaches HBM: then it is what would have.
  records[1].values["work_unique_read_bytes"] = 5000;
  records[1].values["work_unique_write_bytes"] = 400;
  EXPECT_DOUBLE_EQ(roofline_points(records, "a100-sxm4-80gb")[1].bytes, 5400);
}

TEST(Roofline, CeilingsAreTheDevicesRatesAndEqualOnesShareALine) {
  const DeviceSpec device = load_device("a100-sxm4-80gb");
  const std::vector<Ceiling> lines = ceilings(device);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].memory && lines[1].memory);
  EXPECT_EQ(lines[0].rate, device.hbm_read_bytes_per_s.value);
  EXPECT_EQ(lines[1].rate, device.l2_bytes_per_s.value);
  EXPECT_EQ(lines[2].name, "bf16, f16 matrix units");
  EXPECT_EQ(lines[3].name, "i8 matrix units");
  EXPECT_EQ(lines[4].rate, device.f32_flop_per_s.value);
}

// By hand: 1 GFLOP for 10 MB in 100 us is 100 FLOP/B and 10 TFLOP/s; measured 200 us, 5 TFLOP/s.
TEST(RooflinePlot, MarksLieAtTheirIntensityAndRate) {
  const std::vector<Ceiling> lines = {{"HBM", true, 1e12, "me"}, {"units", false, 1e13, "me"}};
  RooflinePoint point{"mine", "", 1e9, 1e7, 100e-6, 90e-6, 120e-6, 200e-6};
  const std::string svg = roofline_plot(lines, {point});
  EXPECT_EQ(markup_problem(svg), "");
  const std::vector<Mark> marks = marks_of(svg);
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].kind, "dot");
  EXPECT_EQ(marks[1].kind, "ring wide");
  EXPECT_DOUBLE_EQ(marks[0].flop, 1e9);
  EXPECT_DOUBLE_EQ(marks[0].bytes, 1e7);
  EXPECT_DOUBLE_EQ(marks[0].seconds, 100e-6);
  EXPECT_DOUBLE_EQ(marks[1].seconds, 200e-6);
  EXPECT_DOUBLE_EQ(marks[0].x, marks[1].x);
  EXPECT_LT(marks[0].y, marks[1].y);
  EXPECT_DOUBLE_EQ(marks[0].y, height_of(svg, 1e13));  // it reaches the level line
  EXPECT_EQ(roofline_plot(lines, {point}), svg);
}

TEST(RooflinePlot, NamesWhatHasNoOperations) {
  std::vector<RooflinePoint> points = roofline_points(computing_records(), "a100-sxm4-80gb");
  EXPECT_EQ(roofline_note(points), "Not on it: topk, which compares and moves without computing.");
  EXPECT_EQ(marks_of(roofline_plot({}, points)).size(), 4u);
  points = {points[4]};
  EXPECT_EQ(roofline_plot({}, points), "");
  EXPECT_EQ(roofline_plot(ceilings(load_device("h200-sxm")), {}), "");
  EXPECT_EQ(roofline_note({}), "");
}

RC_GTEST_PROP(RooflinePlot, NoMarkLeavesThePictureAndNoneLiesAboveACeilingItKeeps, ()) {
  const auto power = [](int low, int high) {
    return std::pow(10.0, *rc::gen::inRange(low * 100, high * 100) / 100.0);
  };
  std::vector<RooflinePoint> points;
  const auto count = *rc::gen::inRange(1, 20);
  for (int i = 0; i < count; ++i) {
    const double seconds = power(-7, 1);
    points.push_back({fmt::format("<k> & {}", i % 8), "", power(0, 16), power(0, 13), seconds,
                      seconds / 2, seconds * 3, *rc::gen::arbitrary<bool>() ? seconds * 1.1 : 0});
  }
  const std::string svg = roofline_plot(ceilings(load_device("h200-sxm")), points);
  RC_ASSERT(markup_problem(svg).empty());
  const double f32 = load_device("h200-sxm").f32_flop_per_s.value;
  const double line = height_of(svg, std::stod(std::to_string(f32)));
  for (const Mark& mark : marks_of(svg)) {
    RC_ASSERT(mark.x >= 96 && mark.x <= 800);
    RC_ASSERT(mark.y >= 18 && mark.y <= 472);
    if (!std::isnan(line) && mark.flop / mark.seconds < f32) RC_ASSERT(mark.y >= line - 0.1);
  }
}

TEST(RooflineSection, IsInTheReportWhenTheDeviceIsKnown) {
  ReportInput input = sample_input(computing_records());
  EXPECT_EQ(html(input).find("id=\"roofline\""), std::string::npos);
  input.device = load_device("a100-sxm4-80gb");
  const std::string page = html(input);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_NE(page.find("Kernels on the roofline of the a100-sxm4-80gb"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::reports
