#include "indexpool/model/record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

constexpr Status all_statuses[] = {Status::passed,    Status::marginal, Status::failed,
                                   Status::untrusted, Status::skipped,  Status::unsupported,
                                   Status::error};

// Any characters but NUL, quotes and control characters among them.
std::string any_text() {
  return *rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::inRange<char>(1, 127), rc::gen::element('"', '\\', '/', '\n', '{', '\x7f')));
}

// Every bit pattern but NaN, which equals nothing.
double any_double() {
  return *rc::gen::suchThat(rc::gen::map(rc::gen::arbitrary<std::uint64_t>(),
                                         [](std::uint64_t bits) {
                                           // RapidCheck draws small numbers: spread them.
                                           return std::bit_cast<double>(bits * 0x9e3779b97f4a7c15U);
                                         }),
                            [](double value) { return !std::isnan(value); });
}

std::int64_t any_count() {
  return *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 1000),
                         rc::gen::just(std::numeric_limits<std::int64_t>::max()));
}

Traffic any_traffic() {
  Traffic traffic;
  traffic.global_load = Bytes(any_count());
  traffic.global_store = Bytes(any_count());
  traffic.load_sectors = any_count();
  traffic.store_sectors = any_count();
  traffic.shared_load = Bytes(any_count());
  traffic.shared_store = Bytes(any_count());
  traffic.shared_wavefronts = any_count();
  traffic.matrix_ops = any_count();
  traffic.block_barriers = any_count();
  traffic.shuffles = any_count();
  return traffic;
}

Verdict any_verdict() {
  Verdict verdict;
  verdict.status =
      *rc::gen::elementOf(std::vector<Status>(std::begin(all_statuses), std::end(all_statuses)));
  verdict.reason = any_text();
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    verdict.checks.push_back({any_text(), Status::marginal, any_text(), std::abs(any_double()),
                              any_count(), any_count()});
  }
  verdict.worst_utilisation = std::abs(any_double());
  verdict.rows = any_count();
  verdict.decidable_rows = any_count();
  return verdict;
}

Prediction any_prediction() {
  Prediction prediction;
  prediction.device = any_text();
  prediction.time = Seconds(any_double());
  prediction.low = Seconds(any_double());
  prediction.high = Seconds(any_double());
  prediction.bound_by = any_text();
  prediction.hbm_bytes = Bytes(any_count());
  prediction.memory = Bytes(any_count());
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
    prediction.terms.push_back({any_text(), Seconds(any_double()), Seconds(any_double()),
                                Seconds(any_double()), any_text(), any_text()});
  }
  return prediction;
}

Problem any_problem() {
  Problem problem;
  problem.indexer = {any_count(), any_count(), any_count(), any_count(),
                     *rc::gen::arbitrary<bool>()};
  problem.mode = any_text();
  problem.attention = any_text();
  problem.lengths = *rc::gen::arbitrary<std::vector<std::int64_t>>();
  problem.schedule = {-1, any_count(), any_count()};
  problem.states_per_page = any_count();
  problem.fill = any_text();
  problem.seed = *rc::gen::arbitrary<std::uint64_t>();
  return problem;
}

Record any_record() {
  const auto maybe = [] { return *rc::gen::arbitrary<bool>(); };
  Record record;
  record.case_name = any_text();
  record.op = any_text();
  record.implementation = any_text();
  record.reference = any_text();
  if (maybe()) record.problem = any_problem();
  record.environment = {any_text(), any_text(), any_text(), any_text(),
                        any_text(), any_text(), any_text()};
  record.verdict = any_verdict();
  if (maybe()) {
    record.measurement = Measurement{Seconds(any_double()),
                                     Seconds(any_double()),
                                     Seconds(any_double()),
                                     any_count(),
                                     any_text(),
                                     any_text()};
  }
  if (maybe()) record.prediction = any_prediction();
  if (maybe()) record.declared = any_traffic();
  if (maybe()) record.counted = any_traffic();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) record.values[any_text()] = any_double();
  record.seed = *rc::gen::element<std::uint64_t>(0, 1, std::numeric_limits<std::uint64_t>::max());
  record.repeat = any_text();
  return record;
}

RC_GTEST_PROP(Record, AnyRecordSurvivesTheRoundTrip, ()) {
  const Record record = any_record();
  const std::string line = to_json_line(record);
  RC_ASSERT(line.find('\n') == std::string::npos);
  RC_ASSERT(record_from_json(line, "test") == record);
  RC_ASSERT(to_json_line(record_from_json(line, "test")) == line);
}

RC_GTEST_PROP(Record, DoublesSurviveBitForBit, ()) {
  Record record;
  record.values["x"] = any_double();
  const Record read = record_from_json(to_json_line(record), "test");
  RC_ASSERT(std::bit_cast<std::uint64_t>(read.values.at("x")) ==
            std::bit_cast<std::uint64_t>(record.values.at("x")));
}

TEST(Record, EdgesOfBinary64Survive) {
  using limits = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, limits::denorm_min(), limits::min(), limits::max(),
                             limits::lowest(), limits::infinity(), -limits::infinity(), 0.1, 1e22,
                             9007199254740993.0, 5e-324, 2.2250738585072011e-308}) {
    Record record;
    record.values["x"] = value;
    const Record read = record_from_json(to_json_line(record), "test");
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read.values.at("x")),
              std::bit_cast<std::uint64_t>(value))
        << value;
  }
}

TEST(Record, NanAndInfinityAreTexts) {
  Record record;
  record.verdict.worst_utilisation = std::numeric_limits<double>::infinity();
  record.values["error"] = std::numeric_limits<double>::quiet_NaN();
  const std::string line = to_json_line(record);
  expect_parts(line, {R"("worst_utilisation":"inf")", R"("error":"nan")"});
  const Record read = record_from_json(line, "test");
  EXPECT_TRUE(std::isinf(read.verdict.worst_utilisation));
  EXPECT_TRUE(std::isnan(read.values.at("error")));
}

TEST(Record, TextThatIsNotUtf8DoesNotLoseTheRecord) {
  Record record;
  record.environment.driver = "caf\xe9";
  record.op = "pool";
  const Record read = record_from_json(to_json_line(record), "test");
  EXPECT_EQ(read.op, "pool");
  EXPECT_EQ(read.environment.driver, "caf\xef\xbf\xbd");  // U+FFFD
}

std::string edited_error(std::string_view from, std::string_view to) {
  Record record;
  record.problem = Problem{};
  record.declared = Traffic{};
  record.verdict.checks.push_back({"bound", Status::passed, "", 0.5, 10, 0});
  std::string line = to_json_line(record);
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the record: " << from;
  line.replace(at, from.size(), to);
  return config_error_of([&] { record_from_json(line, "r.jsonl, line 3"); });
}

TEST(Record, ErrorsNamePlaceAndPointer) {
  expect_parts(edited_error(R"("schema":1)", R"("schema":2)"),
               {"r.jsonl, line 3: /schema", "found schema 2, expected 1"});
  expect_parts(edited_error(R"("schema":1)", R"("shcema":1)"), {"shcema"});
  expect_parts(edited_error(R"("status":"skipped")", R"("status":"green")"),
               {"r.jsonl, line 3: /verdict/status", "\"green\"", "passed"});
  expect_parts(edited_error(R"("utilisation":0.5)", R"("utilisation":"big")"),
               {"/verdict/checks/0/utilisation", "\"nan\""});
  expect_parts(edited_error(R"("utilisation":0.5)", R"("utilisation":"nan")"),
               {"/verdict/checks/0/utilisation", "0 or more"});
  expect_parts(edited_error(R"("rows":0)", R"("rows":-1)"), {"/verdict/rows"});
  expect_parts(edited_error(R"("global_load_bytes":0)", R"("global_load_bytes":-1)"),
               {"/declared/global_load_bytes"});
  expect_parts(edited_error(R"("compared":10,)", ""), {"\"compared\" is missing"});
  expect_parts(edited_error(R"("seed":0)", R"("seed":-1)"), {"/seed"});
  expect_parts(edited_error(R"("lengths":[259])", R"("lengths":[2.5])"), {"/problem/lengths/0"});
  expect_parts(edited_error(R"("seed":0)", R"("seed":0,"seed":0)"), {"appears twice"});
  expect_parts(edited_error(R"("seed":0)", R"("seed":)"), {"r.jsonl, line 3"});
}

TEST(Record, FilesRoundTripAndErrorsNameTheLine) {
  const TemporaryFolder folder;
  const auto path = folder / "deep" / "er" / "records.jsonl";
  std::vector<Record> records(3);
  records[1].op = "pool";
  records[2].values["time_s"] = 1.0 / 3.0;
  write_records(path, records);
  EXPECT_EQ(read_records(path), records);
  const std::string text = read_bytes(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);

  write_bytes(path, text.substr(0, text.size() - 10));
  expect_parts(config_error_of([&] { read_records(path); }), {path.string() + ", line 3"});
  write_bytes(path, text + "\n");
  expect_parts(config_error_of([&] { read_records(path); }), {", line 4", "empty line"});
  write_records(path, {});
  EXPECT_TRUE(read_records(path).empty());
  expect_parts(config_error_of([&] { read_records(folder / "none.jsonl"); }), {"none.jsonl"});
  expect_parts(config_error_of([&] { read_records(folder.path()); }), {"cannot be read"});
}

TEST(WriteText, ReplacesWholeAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  write_text(folder / "a.txt", "first");
  write_text(folder / "a.txt", std::string("a\0b", 3));
  EXPECT_EQ(read_bytes(folder / "a.txt"), std::string("a\0b", 3));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteText, AFailureKeepsWhatWasThere) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "taken");
  write_bytes(folder / "taken" / "file", "kept");
  EXPECT_THROW(write_text(folder / "taken", "x"), EnvironmentError);
  EXPECT_THROW(write_text(folder / "taken" / "file" / "below", "x"), EnvironmentError);
  EXPECT_EQ(read_bytes(folder / "taken" / "file"), "kept");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteText, AFullDiskIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const TemporaryFolder folder;
  EXPECT_THROW(write_text("/dev/full/x", "x"), EnvironmentError);
}

TEST(Status, NamesRoundTrip) {
  for (const Status status : all_statuses) {
    EXPECT_EQ(status_from_name(to_string(status)), status);
  }
  EXPECT_EQ(status_from_name("green"), std::nullopt);
}

TEST(Status, WorstIsOrderedCommutativeAndAssociative) {
  const Status order[] = {Status::skipped,   Status::passed, Status::marginal, Status::unsupported,
                          Status::untrusted, Status::failed, Status::error};
  for (std::size_t i = 0; i < std::size(order); ++i) {
    for (std::size_t j = 0; j < std::size(order); ++j) {
      EXPECT_EQ(worst(order[i], order[j]), order[std::max(i, j)]);
    }
  }
}

TEST(Status, OverallIsTheWorstAndSkippedDoesNotCount) {
  std::vector<Record> records(2);
  EXPECT_EQ(overall_status({}), Status::skipped);
  EXPECT_EQ(overall_status(records), Status::skipped);
  records[0].verdict.status = Status::passed;
  EXPECT_EQ(overall_status(records), Status::passed);
  records[1].verdict.status = Status::untrusted;
  EXPECT_EQ(overall_status(records), Status::untrusted);
  records.emplace_back().verdict.status = Status::failed;
  EXPECT_EQ(overall_status(records), Status::failed);
}

}  // namespace
}  // namespace indexpool
