// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "store/store.h"

namespace muster {

// Puts "<prefix>/" before every key of another store, as PyTorch's PrefixStore does, so that parts
// of a program cannot meet each other's keys.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store)
      : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {}

  using Store::wait;
  Result<void> set(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key) override;
  Result<int64_t> add(std::string_view key, int64_t delta) override;
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired) override;
  Result<bool> check(Keys keys) override;
  Result<void> wait(Keys keys, Duration timeout) override;
  Result<void> append(std::string_view key, std::string_view value) override;
  Result<std::vector<std::string>> multi_get(Keys keys) override;
  Result<void> multi_set(Items items) override;
  Result<bool> erase(std::string_view key) override;
  Result<int64_t> num_keys() override;
  Result<std::vector<std::string>> list_keys() override;
  // Made of a counter and a key, which PyTorch's prefix stores agree on: it works together with
  // them, and across prefix stores and servers without a BARRIER query.
  Result<void> barrier(std::string_view key, int64_t world_size, Duration timeout) override;
  Result<void> queue_push(std::string_view key, std::string_view value) override;
  Result<std::string> queue_pop(std::string_view key, bool block) override;
  Result<int64_t> queue_length(std::string_view key) override;
  Duration timeout() const override { return store_->timeout(); }
  void set_timeout(Duration timeout) override { store_->set_timeout(timeout); }
  Result<std::unique_ptr<Store>> clone() override;

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  std::vector<std::string> full(Keys keys) const;

  const std::string prefix_;  // with the slash
  const std::shared_ptr<Store> store_;
};

}  // namespace muster
