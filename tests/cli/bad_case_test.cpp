#include <cstring>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/safetensors.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

// Every command that reads a case refuses it with exit code 2, names the file and what is wrong,
// and leaves the output folder alone.
void expect_refused(const std::string& path, const char* said) {
  const Folder folder;
  const std::string out = folder.file("report");
  for (const char* command : {"verify", "run"}) {
    const Outcome outcome = indexpool({command, "--case", path, "--out", out});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, path)) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, said)) << said << " is not in: " << outcome.err;
    EXPECT_TRUE(folder.names().empty()) << "something was written";
  }
}

class BadCase : public ::testing::Test {
 protected:
  BadCase() : bytes_(read_text(golden("fp8_small"))) {}

  // A copy of the golden case whose bytes are `bytes`.
  std::string written(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return path();
  }
  // A copy in which `change` was applied to the tensors.
  template <class Change>
  std::string changed(const Change& change) const {
    TensorFile file = read_safetensors(golden("fp8_small"));
    change(file);
    write_safetensors(path(), file);
    return path();
  }
  template <class Change>
  std::string with_header(const Change& change) const {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof(length));
    auto header = nlohmann::ordered_json::parse(bytes_.substr(8, length));
    change(header);
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t size = text.size();
    std::string out(sizeof(size), '\0');
    std::memcpy(out.data(), &size, sizeof(size));
    return written(out + text + bytes_.substr(8 + length));
  }
  template <class Change>
  std::string with_case_json(const Change& change) const {
    return changed([&](TensorFile& file) {
      auto json = nlohmann::ordered_json::parse(file.metadata.at("case"));
      change(json);
      file.metadata["case"] = json.dump();
    });
  }
  std::string path() const { return folder_.file("case.safetensors"); }

  const Folder folder_;
  const std::string bytes_;
};

TEST_F(BadCase, MissingFile) { expect_refused(folder_.file("absent.safetensors"), "absent"); }

TEST_F(BadCase, TruncatedFile) {
  expect_refused(written(bytes_.substr(0, bytes_.size() - 100)), "bytes");
}

TEST_F(BadCase, FileShorterThanItsLength) { expect_refused(written(bytes_.substr(0, 5)), "8"); }

TEST_F(BadCase, HeaderLongerThanTheFile) {
  std::string bytes = bytes_;
  const std::uint64_t length = 90'000'000;
  std::memcpy(bytes.data(), &length, sizeof(length));
  expect_refused(written(bytes), "header");
}

TEST_F(BadCase, OverlappingTensors) {
  expect_refused(with_header([](auto& header) {
                   header["q"]["data_offsets"] = header["q_codes"]["data_offsets"];
                 }),
                 "q");
}

TEST_F(BadCase, SizesWhoseProductOverflows) {
  expect_refused(with_header([](auto& header) {
                   header["q"]["shape"] = {4611686018427387904, 4611686018427387904, 4};
                 }),
                 "q");
}

TEST_F(BadCase, WrongDtype) {
  expect_refused(changed([](TensorFile& file) {
                   file.tensors["ape"] = file.tensors["ape"].converted(DType::f16);
                 }),
                 "ape");
}

TEST_F(BadCase, WrongShape) {
  expect_refused(changed([](TensorFile& file) {
                   file.tensors["ape"] = Tensor(DType::f32, {3, 128});
                 }),
                 "ape");
}

TEST_F(BadCase, MissingTensor) {
  expect_refused(changed([](TensorFile& file) { file.tensors.erase("gate_scores"); }),
                 "gate_scores");
}

TEST_F(BadCase, NanInTheInputs) {
  expect_refused(changed([](TensorFile& file) {
                   file.tensors["k"] = file.tensors["k"].clone();
                   file.tensors["k"].set(130, std::numeric_limits<double>::quiet_NaN());
                 }),
                 "NaN");
}

TEST_F(BadCase, InfinityInTheInputs) {
  expect_refused(changed([](TensorFile& file) {
                   file.tensors["head_weights"] = file.tensors["head_weights"].clone();
                   file.tensors["head_weights"].set(3, std::numeric_limits<double>::infinity());
                 }),
                 "head_weights");
}

TEST_F(BadCase, UnknownKey) {
  expect_refused(with_case_json([](auto& json) { json["index_kpol"] = 4; }), "index_kpol");
}

TEST_F(BadCase, KpoolThatDoesNotDivideTopk) {
  expect_refused(with_case_json([](auto& json) { json["topk"] = 18; }), "topk");
}

TEST_F(BadCase, ZeroTokens) {
  expect_refused(with_case_json([](auto& json) { json["tokens"] = 0; }), "token");
}

TEST_F(BadCase, RecordsThatAreNone) {
  std::ofstream(path()) << "{\"schema\": 1}\n";
  const Folder folder;
  const Outcome outcome = indexpool({"report", path(), "--out", folder.file("report")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, path())) << outcome.err;
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace indexpool::cli
