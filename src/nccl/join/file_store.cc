// SPDX-License-Identifier: Apache-2.0
//
// The log holds requests as they stand on the store's wire: SET, APPEND, DELETE_KEY, QUEUE_PUSH and
// QUEUE_POP. A counter's new value and what a COMPARE_SET stored are SETs.
#include "nccl/join/file_store.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "nccl/join/roll_call.h"
#include "store/deadline.h"
#include "store/wire.h"

namespace muster::comm::detail {

namespace {

using Clock = std::chrono::steady_clock;

// The lock is held for microseconds; a holder that was stopped there may be continued.
constexpr Duration kLeastLockTime{1'000};

std::string record(Query query, std::string_view key) {
  std::string bytes(1, static_cast<char>(query));
  append_string(bytes, key);
  return bytes;
}

std::string record(Query query, std::string_view key, std::string_view value) {
  std::string bytes = record(query, key);
  append_string(bytes, value);
  return bytes;
}

muster::Error full() {
  return muster::Error{ENOSPC, "store: it is full"};
}

bool all_exist(const Table& table, muster::Store::Keys keys) {
  return std::ranges::all_of(keys, [&](const std::string& key) { return table.exists(key); });
}

// False: no such record.
bool apply(Table& table, const Request& request) {
  StringReader strings = request.strings();
  const std::string_view key = strings.next();
  switch (request.query) {
    case Query::kSet:
      return table.set(key, strings.next());
    case Query::kAppend:
      return table.append(key, strings.next());
    case Query::kDeleteKey:
      table.erase(key);
      return true;
    case Query::kQueuePush:
      return table.queue_push(key, strings.next());
    case Query::kQueuePop:
      if (table.queue_length(key) > 0) table.queue_pop(key);
      return true;
    default:
      return false;
  }
}

}  // namespace

Deadline FileStore::lock_deadline() const {
  return deadline_in(std::max(timeout_, kLeastLockTime));
}

muster::Result<void> FileStore::replay(std::string_view records) {
  RequestDecoder decoder{WireLimits()};
  while (!records.empty()) {
    Request request;
    if (decoder.decode(records, &request) != Decoded::kRequest || !apply(table_, request))
      return muster::Error{EPROTO, "file://" + log_.path() + ": is damaged"};
    records.remove_prefix(request.size);
  }
  return {};
}

muster::Result<void> FileStore::catch_up() {
  muster::Result<SharedLog::News> news = log_.read();
  if (!news) return news.error();
  if (news->anew) table_.clear();
  return replay(news->bytes);
}

// Instead of the history, what came of it.
muster::Result<void> FileStore::shorten() {
  std::string records;
  for (const auto& [key, value] : table_.values())
    records += record(Query::kSet, key, value);
  for (const auto& [key, queue] : table_.queues())
    for (const std::string& item : queue)
      records += record(Query::kQueuePush, key, item);
  return log_.replace(records);
}

muster::Result<void> FileStore::write(const std::string& records) {
  if (records.empty()) return {};
  muster::Result<void> done = log_.append(records);
  if (done && log_.size() > kShortenAt && log_.size() / 4 > table_.bytes()) done = shorten();
  if (!done) log_.forget();  // the table is ahead of the file
  return done;
}

muster::Result<void> FileStore::update(const Change& change) {
  const muster::Result<SharedLog::Lock> lock =
      log_.lock(SharedLog::Access::kWrite, lock_deadline());
  if (!lock) return lock.error();
  if (muster::Result<void> caught_up = catch_up(); !caught_up) return caught_up;
  const muster::Result<std::string> records = change(table_);
  if (!records) return records.error();
  return write(*records);
}

muster::Result<void> FileStore::look(const Look& look) {
  const muster::Result<SharedLog::Lock> lock = log_.lock(SharedLog::Access::kRead, lock_deadline());
  if (!lock) return lock.error();
  if (muster::Result<void> caught_up = catch_up(); !caught_up) return caught_up;
  look(table_);
  return {};
}

muster::Result<FileStore::Admission> FileStore::enter(const Admit& admit, Deadline deadline) {
  const muster::Result<SharedLog::Lock> lock = log_.lock(SharedLog::Access::kWrite, deadline);
  if (!lock) return lock.error();
  if (!log_.in_place()) return Admission{Admission::Kind::kComeLater, {}, "it was removed"};
  if (muster::Result<void> caught_up = catch_up(); !caught_up) return caught_up.error();
  muster::Result<Admission> admission = admit(table_, log_.local());
  if (!admission || admission->kind == Admission::Kind::kComeLater) return admission;
  if (admission->kind == Admission::Kind::kBeginAnew || log_.generation() == 0) {
    if (muster::Result<void> begun = log_.begin_anew(); !begun) return begun.error();
    if (muster::Result<void> caught_up = catch_up(); !caught_up) return caught_up.error();
  }
  log_.belong();
  if (muster::Result<void> set = set_all(admission->sets); !set) return set.error();
  return admission;
}

muster::Result<std::unique_ptr<FileStore>> FileStore::open(const std::string& path,
                                                           Duration timeout, const Admit& admit) {
  const Deadline deadline = deadline_in(timeout);
  const auto watchers = std::make_shared<FileWatchers>();
  for (;;) {
    muster::Result<SharedLog> log = SharedLog::open(path);
    if (!log) return log.error();
    std::unique_ptr<FileStore> store(new FileStore(std::move(*log), timeout, watchers));
    std::optional<FileChanges> changes;
    for (bool in_place = true; in_place; in_place = store->log_.in_place()) {
      const bool last = Clock::now() >= deadline;
      const muster::Result<Admission> admission = store->enter(admit, deadline);
      if (!admission) return admission.error();
      if (admission->kind != Admission::Kind::kComeLater) return store;
      if (last) return muster::Error{ETIMEDOUT, "file://" + path + ": " + admission->why};
      if (changes)
        changes->wait(deadline);
      else
        changes.emplace(store->log_.fd());
    }
  }
}

// Under the lock, up to date.
muster::Result<void> FileStore::set_all(Items items) {
  std::string records;
  for (const auto& [key, value] : items) {
    if (!table_.set(key, value)) {
      log_.forget();
      return full();
    }
    records += record(Query::kSet, key, value);
  }
  return write(records);
}

muster::Result<void> FileStore::leave(Items items,
                                      const std::function<bool(const Table& table)>& last) {
  std::lock_guard guard(mutex_);
  const muster::Result<SharedLog::Lock> lock =
      log_.lock(SharedLog::Access::kWrite, lock_deadline());
  if (!lock) return lock.error();
  if (muster::Result<void> caught_up = catch_up(); !caught_up) return caught_up;
  if (muster::Result<void> set = set_all(items); !set) return set;
  if (last(table_)) log_.remove();
  return {};
}

muster::Result<bool> FileStore::there(Keys keys) {
  bool there = false;
  const muster::Result<void> looked =
      look([&](const Table& table) { there = all_exist(table, keys); });
  if (!looked) return looked.error();
  return there;
}

muster::Result<void> FileStore::wait_for(Keys keys, Duration timeout) {
  const Deadline deadline = deadline_in(timeout);
  std::unique_ptr<FileChanges> changes;  // none as long as there is nothing to wait for
  for (;;) {
    const bool last = Clock::now() >= deadline;
    const muster::Result<bool> found = there(keys);
    if (!found || *found || last) {
      if (changes) watchers_->put_back(std::move(changes));
      if (!found) return found.error();
      if (*found) return {};
      return muster::Error{ETIMEDOUT, "store: wait for " + keys[0] + ": timed out after " +
                                          std::to_string(timeout.count()) + "ms"};
    }
    if (changes)
      changes->wait(deadline);
    else
      changes = watchers_->take(log_.fd());  // and look once more, for what came before it
  }
}

muster::Result<void> FileStore::set(std::string_view key, std::string_view value) {
  const std::pair<std::string, std::string> item(key, value);
  return multi_set({&item, 1});
}

muster::Result<void> FileStore::multi_set(Items items) {
  std::lock_guard guard(mutex_);
  const muster::Result<SharedLog::Lock> lock =
      log_.lock(SharedLog::Access::kWrite, lock_deadline());
  if (!lock) return lock.error();
  if (muster::Result<void> caught_up = catch_up(); !caught_up) return caught_up;
  return set_all(items);
}

muster::Result<std::string> FileStore::get(std::string_view key) {
  const std::string keys[] = {std::string(key)};
  muster::Result<std::vector<std::string>> values = multi_get(keys);
  if (!values) return values.error();
  return std::move(values->front());
}

muster::Result<std::vector<std::string>> FileStore::multi_get(Keys keys) {
  std::lock_guard guard(mutex_);
  if (muster::Result<void> there = wait_for(keys, timeout_); !there) return there.error();
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    const std::string* value = table_.find(key);
    values.push_back(value != nullptr ? *value : "");
  }
  return values;
}

muster::Result<int64_t> FileStore::add(std::string_view key, int64_t delta) {
  std::lock_guard guard(mutex_);
  int64_t sum = 0;
  const muster::Result<void> updated = update([&](Table& table) -> muster::Result<std::string> {
    const std::optional<int64_t> added = table.add(key, delta);
    if (!added)
      return muster::Error{EINVAL, "store: add to " + std::string(key) + ": it is no number"};
    sum = *added;
    return record(Query::kSet, key, *table.find(key));
  });
  if (!updated) return updated.error();
  return sum;
}

muster::Result<std::string> FileStore::compare_set(std::string_view key, std::string_view expected,
                                                   std::string_view desired) {
  std::lock_guard guard(mutex_);
  std::string stored;
  const muster::Result<void> updated = update([&](Table& table) -> muster::Result<std::string> {
    const Table::Compared compared = table.compare_set(key, expected, desired);
    if (compared.full) return full();
    stored = compared.value;
    return compared.stored ? record(Query::kSet, key, desired) : "";
  });
  if (!updated) return updated.error();
  return stored;
}

muster::Result<bool> FileStore::check(Keys keys) {
  std::lock_guard guard(mutex_);
  return there(keys);
}

muster::Result<void> FileStore::wait(Keys keys, Duration timeout) {
  std::lock_guard guard(mutex_);
  return wait_for(keys, timeout);
}

muster::Result<void> FileStore::append(std::string_view key, std::string_view value) {
  std::lock_guard guard(mutex_);
  return update([&](Table& table) -> muster::Result<std::string> {
    if (!table.append(key, value)) return full();
    return record(Query::kAppend, key, value);
  });
}

muster::Result<bool> FileStore::erase(std::string_view key) {
  std::lock_guard guard(mutex_);
  bool erased = false;
  const muster::Result<void> updated = update([&](Table& table) -> muster::Result<std::string> {
    erased = table.erase(key);
    return erased ? record(Query::kDeleteKey, key) : "";
  });
  if (!updated) return updated.error();
  return erased;
}

muster::Result<int64_t> FileStore::num_keys() {
  std::lock_guard guard(mutex_);
  int64_t keys = 0;
  const muster::Result<void> looked = look([&](const Table& table) { keys = table.size(); });
  if (!looked) return looked.error();
  return keys;
}

muster::Result<std::vector<std::string>> FileStore::list_keys() {
  std::lock_guard guard(mutex_);
  std::vector<std::string> keys;
  const muster::Result<void> looked = look([&](const Table& table) {
    for (const auto& [key, value] : table.values())
      keys.push_back(key);
  });
  if (!looked) return looked.error();
  return keys;
}

// Of a counter and a key, as under a prefix.
muster::Result<void> FileStore::barrier(std::string_view key, int64_t world_size,
                                        Duration timeout) {
  const std::string name(key);
  const std::vector<std::string> last = {name + "/last_member"};
  const muster::Result<int64_t> members = add(name + "/num_members", 1);
  if (!members) return members.error();
  if (*members == world_size)
    if (muster::Result<void> told = set(last[0], "1"); !told) return told;
  return wait(last, timeout);
}

muster::Result<void> FileStore::queue_push(std::string_view key, std::string_view value) {
  std::lock_guard guard(mutex_);
  return update([&](Table& table) -> muster::Result<std::string> {
    if (!table.queue_push(key, value)) return full();
    return record(Query::kQueuePush, key, value);
  });
}

muster::Result<std::string> FileStore::queue_pop(std::string_view key, bool block) {
  std::lock_guard guard(mutex_);
  const std::string keys[] = {std::string(key)};
  if (block)
    if (muster::Result<void> there = wait_for(keys, timeout_); !there) return there.error();
  std::string item;
  const muster::Result<void> updated = update([&](Table& table) -> muster::Result<std::string> {
    if (table.queue_length(key) == 0)
      return muster::Error{ENODATA, "store: queue " + keys[0] + " is empty"};
    item = table.queue_pop(key);
    return record(Query::kQueuePop, key);
  });
  if (!updated) return updated.error();
  return item;
}

muster::Result<int64_t> FileStore::queue_length(std::string_view key) {
  std::lock_guard guard(mutex_);
  int64_t length = 0;
  const muster::Result<void> looked =
      look([&](const Table& table) { length = table.queue_length(key); });
  if (!looked) return looked.error();
  return length;
}

Duration FileStore::timeout() const {
  std::lock_guard guard(mutex_);
  return timeout_;
}

void FileStore::set_timeout(Duration timeout) {
  std::lock_guard guard(mutex_);
  timeout_ = timeout;
}

muster::Result<std::unique_ptr<muster::Store>> FileStore::clone() {
  std::lock_guard guard(mutex_);
  muster::Result<SharedLog> log = SharedLog::open(log_.path());
  if (!log) return log.error();
  log->belong_to(log_.generation());
  return std::unique_ptr<muster::Store>(new FileStore(std::move(*log), timeout_, watchers_));
}

}  // namespace muster::comm::detail
