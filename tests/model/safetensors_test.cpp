#include "indexpool/model/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

// The bytes of a file: header length, header, data.
std::string file_bytes(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return bytes + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  int begin, int end) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TensorFile read(const TemporaryFolder& folder, const std::string& bytes) {
  write_bytes(folder / "t.safetensors", bytes);
  return read_safetensors(folder / "t.safetensors");
}

TEST(Safetensors, ReadsAHandWrittenFile) {
  const TemporaryFolder folder;
  const TensorFile file =
      read(folder,
           file_bytes(
               "{" + entry("b", "F32", "[1,2]", 3, 11) + "," + entry("a", "U8", "[3]", 0, 3) + "," +
                   entry("none", "BF16", "[0,7]", 3, 3) + R"(,"__metadata__":{"case":"x"}}   )",
               std::string("\1\2\3", 3) + std::string("\0\0\x80\x3f\0\0\0\xc0", 8)));
  EXPECT_EQ(file.metadata.at("case"), "x");
  EXPECT_EQ(file.require("a", DType::u8, {3}).at(2), 3);
  const Tensor& b = file.require("b", DType::f32, {-1, 2});  // starts at an odd address
  EXPECT_EQ(b.as<float>()[0], 1);
  EXPECT_EQ(b.as<float>()[1], -2);
  EXPECT_EQ(file.require("none").shape(), (Shape{0, 7}));
}

struct BadFile {
  const char* name;
  std::string bytes;
  std::vector<std::string> says;
};

std::vector<BadFile> bad_files() {
  const std::string four(4, '\1');
  const std::string one = entry("a", "U8", "[4]", 0, 4);
  const auto with = [&](const std::string& tensors) {
    return file_bytes("{" + tensors + "}", four);
  };
  const std::string negative = std::string(8, '\xff') + "{}";
  return {
      {"empty", "", {"byte 0", "the file ends here"}},
      {"shorter than a length", "\1\2\3", {"byte 3", "8 bytes of the header's length"}},
      {"header longer than the file",
       file_bytes("{}", "").substr(0, 9),
       {"byte 0", "2 bytes, but only 1 follow", "truncated"}},
      {"length beyond the format", negative, {"byte 0", "more than the 100000000"}},
      {"not JSON",
       file_bytes("{\"a\":", four),
       {"header at byte 8", "line 1, column 6", "not JSON"}},
      {"no header", file_bytes("", four), {"header at byte 8", "not JSON"}},
      {"not an object", file_bytes("[]", ""), {"found an array, expected an object"}},
      {"metadata not text",
       with(one + R"(,"__metadata__":{"x":1})"),
       {"/__metadata__/x", "expected a string"}},
      {"same tensor twice", with(one + "," + one), {R"(the key "a" appears twice)"}},
      {"no offsets",
       with(R"("a":{"dtype":"U8","shape":[4]})"),
       {R"(/a: the key "data_offsets" is missing)"}},
      {"unknown key",
       with(R"("a":{"dtyp":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})"),
       {R"(unknown key "dtyp")"}},
      {"one offset",
       with(R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0]})"),
       {"/a/data_offsets: found 1 numbers, expected 2"}},
      {"unknown dtype", with(entry("a", "U4", "[4]", 0, 4)), {"/a/dtype", R"("U4")", "F8_E4M3"}},
      {"negative size", with(entry("a", "U8", "[-4]", 0, 4)), {"/a/shape/0", "-4"}},
      {"sizes that overflow",
       with(entry("a", "U8", "[4294967296,4294967296]", 0, 4)),
       {"/a", "4294967296", "63 bits"}},
      {"bytes that overflow",
       with(entry("a", "F64", "[2305843009213693952]", 0, 4)),
       {"/a", "63 bits"}},
      {"past the end",
       with(entry("a", "U8", "[5]", 0, 5)),
       {"/a/data_offsets/1: found 5, but 4 bytes follow the header"}},
      {"backwards",
       with(entry("a", "U8", "[0]", 3, 1)),
       {"/a/data_offsets/1: found the number 1, expected an integer from 3"}},
      {"another number of bytes",
       with(entry("a", "F32", "[2]", 0, 4)),
       {"/a/data_offsets: found 4 bytes, but f32 [2] takes 8"}},
      {"overlap",
       with(entry("a", "U8", "[3]", 0, 3) + "," + entry("b", "U8", "[2]", 2, 4)),
       {R"(tensor "b" overlaps tensor "a")", "byte "}},
      {"same bytes twice", with(one + "," + entry("b", "U8", "[4]", 0, 4)), {"overlaps"}},
      {"gap",
       with(entry("a", "U8", "[1]", 0, 1) + "," + entry("b", "U8", "[2]", 2, 4)),
       {R"(tensor "b" leaves a gap after tensor "a")"}},
      {"gap at the start", with(entry("a", "U8", "[2]", 2, 4)), {"leaves a gap after the header"}},
      {"bytes left over", with(entry("a", "U8", "[3]", 0, 3)), {"1 bytes belong to no tensor"}},
      {"truncated data",
       file_bytes("{" + one + "}", "\1\1"),
       {"/a/data_offsets/1: found 4, but 2 bytes follow the header", "truncated"}},
  };
}

TEST(Safetensors, BadFilesAreRefusedByPlace) {
  const TemporaryFolder folder;
  for (const BadFile& row : bad_files()) {
    SCOPED_TRACE(row.name);
    const std::string text = config_error_of([&] { read(folder, row.bytes); });
    expect_parts(text, {"t.safetensors: "});
    expect_parts(text, row.says);
  }
}

TEST(Safetensors, OffsetsAreNamedAsBytesOfTheFile) {
  const TemporaryFolder folder;
  const std::string header = "{" + entry("a", "U8", "[3]", 0, 3) + "}";
  const std::string text =
      config_error_of([&] { read(folder, file_bytes(header, std::string(5, 'x'))); });
  expect_parts(text, {"byte " + std::to_string(8 + header.size() + 3) + ": 2 bytes"});
}

TEST(Safetensors, AnythingButAFileIsRefused) {
  const TemporaryFolder folder;
  expect_parts(config_error_of([&] { read_safetensors(folder / "absent"); }),
               {"absent", "No such"});
  expect_parts(config_error_of([&] { read_safetensors(folder.path()); }), {"not a regular file"});
}

TEST(Safetensors, RequireSaysWhatIsThere) {
  TensorFile file;
  file.path = "dir/x.safetensors";
  file.tensors.emplace("keys", Tensor(DType::f32, {2, 3}));
  EXPECT_EQ(file.require("keys", DType::f32, {2, -1}).size(), 6);
  expect_parts(config_error_of([&] { file.require("kays"); }),
               {R"(dir/x.safetensors: the tensor "kays" is missing)", R"(did you mean "keys")"});
  const std::string text = R"(tensor "keys": found f32 [2, 3], expected )";
  expect_parts(config_error_of([&] {
                 file.require("keys", DType::bf16, {2, 3});
               }),
               {text + "bf16 [2, 3]"});
  expect_parts(config_error_of([&] {
                 file.require("keys", DType::f32, {-1, 4});
               }),
               {text + "f32 [any, 4]"});
  expect_parts(config_error_of([&] { file.require("keys", DType::f32, {6}); }), {text + "f32 [6]"});
}

TEST(Safetensors, TensorsAreAlignedWhereverTheHeaderEnds) {
  const TemporaryFolder folder;
  const std::string data("\1\2\3\0\0\0\0\0\0\xf0\x3f", 11);
  for (std::size_t padding = 0; padding < 8; ++padding) {
    std::string header("{");
    header.append(entry("a", "U8", "[3]", 0, 3))
        .append(",")
        .append(entry("b", "F64", "[1]", 3, 11));
    header.append("}").append(padding, ' ');
    const TensorFile file = read(folder, file_bytes(header, data));
    const Tensor& b = file.require("b");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % 8, 0U) << padding;
    EXPECT_EQ(b.at(0), 1);
  }
}

TEST(Safetensors, TensorsOutliveTheirFile) {
  const TemporaryFolder folder;
  TensorFile written;
  written.tensors.emplace("x", Tensor(DType::i32, {1000}));
  for (int i = 0; i < 1000; ++i) written.tensors.at("x").set(i, i);
  write_safetensors(folder / "x.safetensors", written);
  Tensor x = read_safetensors(folder / "x.safetensors").require("x");
  std::filesystem::remove(folder / "x.safetensors");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(x.at(i), i);
}

TEST(Safetensors, AFailedWriteLeavesNothing) {
  const TemporaryFolder folder;
  TensorFile file;
  file.tensors.emplace("x", Tensor(DType::i32, {4}));
  std::filesystem::create_directories(folder / "taken" / "inside");
  EXPECT_THROW(write_safetensors(folder / "taken", file), EnvironmentError);
  write_bytes(folder / "plain", "text");
  EXPECT_THROW(write_safetensors(folder / "plain" / "x", file), EnvironmentError);
  EXPECT_EQ(read_bytes(folder / "plain"), "text");
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(item.path().filename());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"plain", "taken"}));
}

// A file with tensors of any dtype and small shapes, filled with any bytes.
TensorFile arbitrary_file() {
  constexpr std::array dtypes = {DType::f64,  DType::f32, DType::bf16, DType::f16, DType::e4m3,
                                 DType::e5m2, DType::i64, DType::i32,  DType::i8,  DType::u8};
  TensorFile file;
  file.metadata = *rc::gen::map(
      rc::gen::container<std::map<std::string, int>>(
          rc::gen::nonEmpty(rc::gen::string<std::string>()), rc::gen::arbitrary<int>()),
      [](const std::map<std::string, int>& numbers) {
        std::map<std::string, std::string> texts;
        for (const auto& [key, value] : numbers) {
          std::string ascii = "k";
          for (const char c : key) ascii += static_cast<char>(c & 0x7f);
          texts[ascii] = std::to_string(value);
        }
        return texts;
      });
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    const auto shape =
        *rc::gen::resize(3, rc::gen::container<Shape>(rc::gen::inRange<std::int64_t>(0, 5)));
    Tensor tensor(*rc::gen::elementOf(dtypes), shape);
    for (std::byte& byte : std::span(tensor.data(), tensor.raw().size())) {
      byte = static_cast<std::byte>(*rc::gen::inRange(0, 256));
    }
    file.tensors.emplace("tensor" + std::to_string(i), tensor);
  }
  return file;
}

RC_GTEST_PROP(SafetensorsLaws, WhatIsWrittenIsReadAndWrittenAlikeAgain, ()) {
  const TemporaryFolder folder;
  const TensorFile file = arbitrary_file();
  write_safetensors(folder / "a" / "1.safetensors", file);
  const TensorFile read = read_safetensors(folder / "a" / "1.safetensors");
  RC_ASSERT(read.metadata == file.metadata);
  RC_ASSERT(read.tensors.size() == file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const Tensor& other = read.require(name, tensor.dtype(), tensor.shape());
    RC_ASSERT(std::memcmp(other.data(), tensor.data(), tensor.raw().size()) == 0);
    RC_ASSERT(reinterpret_cast<std::uintptr_t>(other.data()) %
                  static_cast<std::uintptr_t>(info(tensor.dtype()).bytes) ==
              0);
  }
  write_safetensors(folder / "2.safetensors", read);
  RC_ASSERT(read_bytes(folder / "2.safetensors") == read_bytes(folder / "a" / "1.safetensors"));
}

// Cuts, repeats, or changes some bytes; the header is where it hurts.
std::string mutated(std::string bytes) {
  const int changes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, *rc::gen::inRange<std::size_t>(1, 9));
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, *rc::gen::inRange<std::size_t>(1, 30)));
        break;
      case 3:
        bytes[at] = *rc::gen::element('0', '9', '[', ']', '{', '}', '"', ',', '-', '\0', '\xff');
        break;
      default:
        bytes[at] = static_cast<char>(*rc::gen::inRange(0, 256));
    }
  }
  return bytes;
}

RC_GTEST_PROP(SafetensorsLaws, AnyMutationIsReadOrRefused, ()) {
  const TemporaryFolder folder;
  write_safetensors(folder / "valid.safetensors", arbitrary_file());
  const std::string valid = read_bytes(folder / "valid.safetensors");
  for (int round = 0; round < 20; ++round) {
    const std::string bytes = mutated(valid);
    write_bytes(folder / "m.safetensors", bytes);
    try {
      const TensorFile file = read_safetensors(folder / "m.safetensors");
      std::int64_t total = 0;
      for (const auto& [name, tensor] : file.tensors) {
        double sum = 0;  // touches every element
        for (std::int64_t i = 0; i < tensor.size(); ++i) sum += tensor.at(i);
        RC_ASSERT(sum == sum || sum != sum);
        total += tensor.bytes().value;
      }
      RC_ASSERT(total <= static_cast<std::int64_t>(bytes.size()));
    } catch (const ConfigError& error) {
      RC_ASSERT(std::string(error.what()).find("m.safetensors: ") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace indexpool
