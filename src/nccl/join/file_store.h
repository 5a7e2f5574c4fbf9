// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nccl/join/file_changes.h"
#include "nccl/join/shared_log.h"
#include "store/store.h"
#include "store/table.h"

namespace muster::comm::detail {

// A Store in a file that all members can reach: a log of changes, which each of them replays. Who
// waits is woken by inotify, and looks again a few times a second because other hosts' writes make
// no such event.
//
// Errors as Store's, and ESTALE when another job began the file anew.
class FileStore final : public muster::Store {
 public:
  static constexpr Table::Limits kLimits{.bytes = uint64_t{256} << 20, .value = uint64_t{64} << 20};
  // A log longer than this that is mostly history is shortened.
  static constexpr uint64_t kShortenAt = uint64_t{1} << 20;

  // What a newcomer does about what is in the file, decided under the lock.
  struct Admission {
    enum class Kind : uint8_t { kEnter, kBeginAnew, kComeLater };
    Kind kind = Kind::kEnter;
    std::vector<std::pair<std::string, std::string>> sets{};  // stored at once, unless kComeLater
    std::string why{};                                        // kComeLater
  };
  using Admit = std::function<muster::Result<Admission>(const Table& table, bool local_disk)>;

  // kComeLater is tried again until the timeout, which is the store's afterwards.
  static muster::Result<std::unique_ptr<FileStore>> open(const std::string& path, Duration timeout,
                                                         const Admit& admit);

  // Sets these; then, still under the lock, removes the file if `last` says so.
  muster::Result<void> leave(Items items, const std::function<bool(const Table& table)>& last);

  using Store::wait;
  muster::Result<void> set(std::string_view key, std::string_view value) override;
  muster::Result<std::string> get(std::string_view key) override;
  muster::Result<int64_t> add(std::string_view key, int64_t delta) override;
  muster::Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                          std::string_view desired) override;
  muster::Result<bool> check(Keys keys) override;
  muster::Result<void> wait(Keys keys, Duration timeout) override;
  muster::Result<void> append(std::string_view key, std::string_view value) override;
  muster::Result<std::vector<std::string>> multi_get(Keys keys) override;
  muster::Result<void> multi_set(Items items) override;
  muster::Result<bool> erase(std::string_view key) override;
  muster::Result<int64_t> num_keys() override;
  muster::Result<std::vector<std::string>> list_keys() override;
  muster::Result<void> barrier(std::string_view key, int64_t world_size, Duration timeout) override;
  muster::Result<void> queue_push(std::string_view key, std::string_view value) override;
  muster::Result<std::string> queue_pop(std::string_view key, bool block) override;
  muster::Result<int64_t> queue_length(std::string_view key) override;
  Duration timeout() const override;
  void set_timeout(Duration timeout) override;
  muster::Result<std::unique_ptr<muster::Store>> clone() override;

 private:
  FileStore(SharedLog log, Duration timeout, std::shared_ptr<FileWatchers> watchers)
      : log_(std::move(log)), timeout_(timeout), watchers_(std::move(watchers)) {}

  // These run under the mutex. `change` changes the table, which is up to date, and gives the
  // records of what it did; `look` only looks.
  using Change = std::function<muster::Result<std::string>(Table& table)>;
  using Look = std::function<void(const Table& table)>;
  muster::Result<void> update(const Change& change);
  muster::Result<void> look(const Look& look);
  muster::Result<void> catch_up();
  muster::Result<void> write(const std::string& records);
  muster::Result<void> replay(std::string_view records);
  muster::Result<void> shorten();
  muster::Result<Admission> enter(const Admit& admit, Deadline deadline);
  muster::Result<void> wait_for(Keys keys, Duration timeout);
  muster::Result<bool> there(Keys keys);
  muster::Result<void> set_all(Items items);
  Deadline lock_deadline() const;

  SharedLog log_;
  Table table_{kLimits};
  Duration timeout_;
  const std::shared_ptr<FileWatchers> watchers_;
  mutable std::mutex mutex_;
};

}  // namespace muster::comm::detail
