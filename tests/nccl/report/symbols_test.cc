// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/symbols.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "nccl/report/stack.h"

namespace muster::comm::detail {
namespace {

// Not exported: dladdr() does not know it.
[[gnu::noinline]] uintptr_t local_function() {
  return reinterpret_cast<uintptr_t>(__builtin_return_address(0));
}

std::vector<std::byte> own_file() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace

TEST_CASE("a function that is not exported has a name") {
  SymbolFinder finder;
  const Symbol symbol = finder.find(reinterpret_cast<uintptr_t>(&local_function), true);
  CHECK(symbol.name.find("local_function") != std::string_view::npos);
  CHECK(symbol.name.data()[symbol.name.size()] == 0);
  CHECK(symbol.module == "report_tests");
  CHECK(symbol.address > 0);
  CHECK(finder.find(local_function(), false).module == "report_tests");
}

TEST_CASE("functions of libraries have names, what is no code has none") {
  SymbolFinder finder;
  CHECK(finder.find(reinterpret_cast<uintptr_t>(&std::terminate), true).name == "_ZSt9terminatev");
  const Symbol nowhere = finder.find(16, true);
  CHECK(nowhere.name.empty());
  CHECK(nowhere.module.empty());
  CHECK(nowhere.address == 16);
}

TEST_CASE("a file that is cut off or damaged gives no name and no crash") {
  std::vector<std::byte> file = own_file();
  REQUIRE(file.size() > 4096);
  SymbolFinder finder;
  const uint64_t address = finder.find(reinterpret_cast<uintptr_t>(&local_function), true).address;
  const std::string_view whole = function_at(file, address);
  CHECK(whole.find("local_function") != std::string_view::npos);
  CHECK(function_at({}, address).empty());
  CHECK(linked_address({}, 0, 5) == 5);
  for (size_t size = 1; size < file.size(); size = size * 2 + 1) {
    const std::vector<std::byte> part(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    CHECK(function_at(part, address).size() < file.size());
    linked_address(part, 0, address);
  }
  for (size_t i = 0; i < 64; i++) {
    std::vector<std::byte> damaged = file;
    damaged[i] = std::byte{0xff};
    function_at(damaged, address);
    linked_address(damaged, 0, address);
  }
}

TEST_CASE("a stack is told with the innermost frame last") {
  Stack stack;
  stack.capture();
  CHECK(stack.frames().size() > 2);
  std::vector<char> memory(64 * 1024);
  FixedText text(memory);
  describe(stack, Names::kDemangled, text);
  const std::string_view told = text.text();
  const size_t main = told.find("  main in report_tests+0x");
  const size_t here = told.find("Stack::capture()");
  REQUIRE(main != std::string_view::npos);
  REQUIRE(here != std::string_view::npos);
  CHECK(main < here);
  CHECK(told.ends_with("\n"));
}

}  // namespace muster::comm::detail
