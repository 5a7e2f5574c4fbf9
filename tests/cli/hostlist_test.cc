// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/hostlist.h"

#include <doctest/doctest.h>

namespace muster {
namespace {

using Names = std::vector<std::string>;

std::string why_not(const std::string& text) {
  Result<Names> names = expand_hostlist(text);
  return names ? "accepted" : names.error().message;
}

}  // namespace

TEST_SUITE_BEGIN("host list");

TEST_CASE("ranges, lists and plain names make hosts in their order") {
  CHECK(*expand_hostlist("n1") == Names{"n1"});
  CHECK(*expand_hostlist("n[1-3,7],login") == Names{"n1", "n2", "n3", "n7", "login"});
  CHECK(*expand_hostlist("gpu[008-010]-ib") == Names{"gpu008-ib", "gpu009-ib", "gpu010-ib"});
  CHECK(*expand_hostlist("r[1-2]n[0-1]") == Names{"r1n0", "r1n1", "r2n0", "r2n1"});
  CHECK(*expand_hostlist("a.b.c,x_[9-10]") == Names{"a.b.c", "x_9", "x_10"});
  CHECK(*expand_hostlist("[1-2]") == Names{"1", "2"});
  CHECK(*expand_hostlist("n[099-101]") == Names{"n099", "n100", "n101"});
}

TEST_CASE("what is no list says which part is wrong") {
  CHECK(why_not("") == "a name is empty");
  CHECK(why_not("a,,b") == "a name is empty");
  CHECK(why_not("a,") == "a name is empty");
  CHECK(why_not("n[1-3") == "a bracket is not closed");
  CHECK(why_not("n[]") == "'' is no number and no range");
  CHECK(why_not("n[1-]") == "'1-' is no number and no range");
  CHECK(why_not("n[a-c]") == "'a-c' is no number and no range");
  CHECK(why_not("n[1-2-3]") == "'1-2-3' is no number and no range");
  CHECK(why_not("n[4-2]") == "'4-2' runs backwards");
  CHECK(why_not("n[[1]]") == "'[1' is no number and no range");
  CHECK(why_not("n]") == "'n]' is no host name");
  CHECK(why_not("a b") == "'a b' is no host name");
  CHECK(why_not("n[1234567890123]") == "'1234567890123' is no number and no range");
}

TEST_CASE("a list that no machine has is refused before it is made") {
  const std::string limit = "more than 65536 hosts";
  CHECK(expand_hostlist("n[1-65536]")->size() == kMaxHosts);
  CHECK(why_not("n[0-65536]") == limit);
  CHECK(why_not("n[1-999999999999]") == limit);
  CHECK(why_not("a[1-300]b[1-300]") == limit);
  CHECK(why_not("a[1-256]b[1-256],c") == limit);
  CHECK(why_not("n[1-40000,1-40000]") == limit);
  CHECK(why_not(std::string(256, 'n')) == "a name is too long");
}

TEST_SUITE_END();

}  // namespace muster
