// SPDX-License-Identifier: Apache-2.0
// muster's store client against whatever server listens on 127.0.0.1:PORT. Exits 0 if every call
// did what PyTorch's own client would have seen; otherwise names the first that did not. Leaves the
// keys "native" and "prefix/native" for a PyTorch client to find, and waits for its "python".

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "store/client.h"
#include "store/prefix_store.h"

namespace {

using namespace muster;
using std::chrono::milliseconds;
using Keys = std::vector<std::string>;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "store client: %s\n", what);
  std::exit(1);
}

template <typename T>
T value(Result<T> result, const char* what) {
  if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str());
  expect(result.has_value(), what);
  return std::move(*result);
}

void use(Store& store) {
  expect(store.set("native", "value").has_value(), "set");
  expect(value(store.get("native"), "get") == "value", "get gives what was set");
  expect(value(store.add("count", 5), "add") == 5, "add begins at 0");
  expect(value(store.add("count", -7), "add") == -2, "add goes below 0");
  expect(value(store.get("count"), "get") == "-2", "a counter is text");
  expect(value(store.compare_set("c", "x", "y"), "compare_set") == "x", "compare_set, no key");
  expect(value(store.compare_set("c", "", "y"), "compare_set") == "y", "compare_set creates");
  expect(value(store.check(Keys{"native", "c"}), "check"), "check finds all");
  expect(!value(store.check(Keys{"native", "none"}), "check"), "check misses one");
  for (int i = 0; i < 3; ++i) {
    auto late = store.wait(Keys{"none"}, milliseconds(30));
    expect(!late.has_value() && late.error().code == ETIMEDOUT, "a wait in vain times out");
  }
  expect(store.append("c", "z").has_value(), "append");
  const std::pair<std::string, std::string> items[] = {{"m1", "1"}, {"m2", ""}};
  expect(store.multi_set(items).has_value(), "multi_set");
  expect(value(store.multi_get(Keys{"m2", "c", "m1"}), "multi_get") == Keys{"", "yz", "1"},
         "multi_get keeps the order");
  expect(value(store.erase("m1"), "erase") && !value(store.erase("m1"), "erase"), "erase");
  expect(value(store.num_keys(), "num_keys") >= 4, "num_keys");
  expect(!value(store.list_keys(), "list_keys").empty(), "list_keys");
  expect(store.barrier("alone", 1, milliseconds(10'000)).has_value(), "a barrier of one passes");
  expect(!store.barrier("two", 2, milliseconds(30)).has_value(), "a barrier of two holds one");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const StoreClient::Options options{"127.0.0.1", std::atoi(argv[1]), milliseconds(20'000), true};
  std::shared_ptr<Store> store = value(StoreClient::connect(options), "connect");
  use(*store);
  PrefixStore prefixed("prefix", store);
  use(prefixed);
  std::unique_ptr<Store> clone = value(prefixed.clone(), "clone");
  expect(value(clone->get("native"), "get") == "value", "a clone has the same prefix");
  expect(value(store->get("python"), "get") == "here", "what PyTorch's client set");
  std::puts("done");
}
