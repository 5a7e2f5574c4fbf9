// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/train/checkpoint.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nccl/train/crc32.h"
#include "nccl/train/file_bytes.h"
#include "nccl/train/temporary_folder.h"
#include "nccl/train/tensor_format.h"

namespace mt = muster::train;
using muster::comm::Buffer;
using muster::comm::ErrorCode;
using muster::train::Metadata;
using muster::train::NamedTensor;
using muster::train_test::contents;
using muster::train_test::has;
using muster::train_test::replace;
using muster::train_test::TemporaryFolder;

namespace {

// A file whose header is ours to get wrong.
std::string with_header(const std::string& json, const std::string& data) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i)
    bytes += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return bytes + json + data;
}

struct Model {
  std::vector<float> weight{1, 2, 3, 4, 5, 6};
  std::vector<int64_t> step{7};
  std::vector<muster::comm::Bfloat16> half{{0x3f00}};
  std::vector<NamedTensor> tensors() {
    return {{"weight", {2, 3}, weight}, {"step", {}, step}, {"half", {1}, half}};
  }
};

}  // namespace

TEST_CASE("what is written is read again") {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.safetensors");
  Model model;
  REQUIRE(mt::write_tensors(path, model.tensors(), {{"epoch", "3"}}));
  Model other{{0, 0, 0, 0, 0, 0}, {0}, {{}}};
  const Metadata metadata = mt::read_tensors(path, other.tensors()).value();
  CHECK(metadata == Metadata{{"epoch", "3"}});
  CHECK(other.weight == model.weight);
  CHECK(other.step == model.step);
  CHECK(other.half[0].bits == model.half[0].bits);
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_CASE("a file is in the safetensors format") {
  const TemporaryFolder folder;
  Model model;
  REQUIRE(mt::write_tensors(folder.path("m"), model.tensors(), {{"epoch", "3"}}));
  const std::string bytes = contents(folder.path("m"));
  const uint64_t length = mt::detail::decode_length(bytes);
  CHECK(length % 8 == 0);
  const auto json = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(json["weight"]["dtype"] == "F32");
  CHECK(json["weight"]["shape"] == std::vector<int>{2, 3});
  CHECK(json["weight"]["data_offsets"] == std::vector<int>{0, 24});
  CHECK(json["step"]["shape"].empty());
  CHECK(json["half"]["dtype"] == "BF16");
  CHECK(json["__metadata__"]["epoch"] == "3");
  const std::string data = bytes.substr(8 + length);
  CHECK(data.size() == 24 + 8 + 2);
  const uint32_t crc = mt::detail::crc32(0, data.data(), data.size());
  CHECK(json["__metadata__"][mt::kChecksumKey] == mt::detail::crc32_text(crc));
}

TEST_CASE("a file without our checksum is read too") {
  const TemporaryFolder folder;
  const std::string path = folder.path("python");
  replace(path, with_header(R"({"b":{"dtype":"I8","shape":[2],"data_offsets":[1,3]},)"
                            R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}  )",
                            "\x05\x06\x07"));
  std::vector<uint8_t> a(1);
  std::vector<int8_t> b(2);
  REQUIRE(mt::read_tensors(path, std::vector<NamedTensor>{{"b", {2}, b}, {"a", {}, a}}));
  CHECK(a[0] == 5);
  CHECK(b == std::vector<int8_t>{6, 7});
  const mt::TensorFile file = mt::inspect_tensors(path).value();
  REQUIRE(file.tensors.size() == 2);
  CHECK(file.tensors[0].name == "a");
  CHECK(file.tensors[1].data.count == 2);
}

TEST_CASE("crc32 is zlib's, in one piece and in several") {
  const std::string text = "123456789, and some more bytes than eight";
  CHECK(mt::detail::crc32(0, "123456789", 9) == 0xcbf43926);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = mt::detail::crc32(0, text.data(), cut);
    CHECK(mt::detail::crc32(first, text.data() + cut, text.size() - cut) ==
          mt::detail::crc32(0, text.data(), text.size()));
  }
}

TEST_CASE("a file cut off anywhere is called torn") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  Model model;
  REQUIRE(mt::write_tensors(path, model.tensors()));
  const std::string whole = contents(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    replace(path, whole.substr(0, size));
    const auto read = mt::read_tensors(path, model.tensors());
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kSystem);
    CHECK(has(read.error().message, path + ": torn"));
  }
}

TEST_CASE("a number that was altered is found") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  Model model;
  REQUIRE(mt::write_tensors(path, model.tensors()));
  std::string bytes = contents(path);
  bytes[bytes.size() - 4] ^= 1;
  replace(path, bytes);
  const auto read = mt::read_tensors(path, model.tensors());
  REQUIRE_FALSE(read);
  CHECK(has(read.error().message, "altered: the checksum of its numbers is "));
}

TEST_CASE("headers that lie are refused, whatever they say") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  std::vector<float> two(2);
  const std::vector<NamedTensor> wanted{{"a", {2}, two}};
  const std::string data(8, '\0');
  for (const char* header : {
           "",
           "[]",
           "{",
           "nonsense",
           R"({"a":1})",
           R"({"a":{}})",
           R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})",
           R"({"__metadata__":{"x":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       }) {
    CAPTURE(header);
    replace(path, with_header(header, data));
    const auto read = mt::read_tensors(path, wanted);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kSystem);
  }
}

TEST_CASE("a header longer than the limit is neither read nor written") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  std::string bytes = with_header("{}", "");
  const uint64_t length = mt::detail::kMaxHeader + 1;
  for (size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(length >> (8 * i) & 0xff);
  replace(path, bytes);
  const auto read = mt::read_tensors(path, {});
  REQUIRE_FALSE(read);
  CHECK(has(read.error().message, "its header is too long"));
  const Metadata metadata{{"k", std::string(mt::detail::kMaxHeader, 'x')}};
  CHECK(mt::write_tensors(folder.path("n"), {}, metadata).error().code ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("tensors that differ from the program's are named") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  std::vector<float> six(6);
  std::vector<double> doubles(6);
  REQUIRE(mt::write_tensors(path, std::vector<NamedTensor>{{"w", {2, 3}, six}}));
  const auto error = [&](const std::vector<NamedTensor>& tensors) {
    const auto read = mt::read_tensors(path, tensors);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kMismatch);
    return read.error().message;
  };
  CHECK(has(error({{"w", {3, 2}, six}}), "'w' is F32 [2, 3], the program's is F32 [3, 2]"));
  CHECK(has(error({{"w", {2, 3}, doubles}}), "the program's is F64 [2, 3]"));
  CHECK(has(error({{"v", {2, 3}, six}}), "'w' is not one of the program's"));
  CHECK(has(error({{"w", {2, 3}, six}, {"v", {6}, six}}), "'v' is missing"));
}

TEST_CASE("calls that cannot be right are refused") {
  std::vector<float> two(2);
  const auto code = [](const std::vector<NamedTensor>& tensors) {
    const auto done = mt::write_tensors("/never/made", tensors);
    REQUIRE_FALSE(done);
    return done.error().code;
  };
  CHECK(code({{"a", {3}, two}}) == ErrorCode::kInvalidArgument);
  CHECK(code({{"a", {2}, two}, {"a", {2}, two}}) == ErrorCode::kInvalidArgument);
  CHECK(code({{"", {2}, two}}) == ErrorCode::kInvalidArgument);
  CHECK(code({{"a", {-2}, two}}) == ErrorCode::kInvalidArgument);
  CHECK(code({{"a", {2}, Buffer(nullptr, 2, muster::comm::DataType::kFloat32)}}) ==
        ErrorCode::kInvalidArgument);
  const Buffer device = Buffer::device(two.data(), 2, muster::comm::DataType::kFloat32, nullptr);
  CHECK(code({{"a", {2}, device}}) == ErrorCode::kInvalidArgument);
  CHECK(code({{"a", {2}, two}}) == ErrorCode::kSystem);  // the folder is not there
}

TEST_CASE("a write that fails leaves the earlier file and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  std::vector<float> numbers(100000, 1);
  std::vector<float> few(2, 5);
  REQUIRE(mt::write_tensors(path, std::vector<NamedTensor>{{"a", {2}, few}}));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto done = mt::write_tensors(path, std::vector<NamedTensor>{{"a", {100000}, numbers}});
  setrlimit(RLIMIT_FSIZE, &before);
  static_cast<void>(std::signal(SIGXFSZ, handler));
  REQUIRE_FALSE(done);
  CHECK(has(done.error().message, "write " + path + ".partial: File too large"));
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  few = {0, 0};
  REQUIRE(mt::read_tensors(path, std::vector<NamedTensor>{{"a", {2}, few}}));
  CHECK(few == std::vector<float>{5, 5});
}
