// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/file_discovery.h"

#include <algorithm>
#include <utility>

#include "loop/interfaces.h"
#include "loop/pool.h"

namespace muster {

namespace {

constexpr Milliseconds kFirstRetry{50};
constexpr Milliseconds kLastRetry{1'000};

// Letting go of a lock may wait for a file server.
void leave_in_pool(Loop& loop, const std::shared_ptr<UniqueFd>& lock) {
  if (!lock || !*lock) return;
  run_in_pool(
      loop, [lock] { leave_meeting_file(std::move(*lock)); }, [] {});
}

}  // namespace

FileDiscovery::FileDiscovery(Loop& loop, const RendezvousPlan& plan, std::string run_id,
                             ListenAt listen, Callbacks callbacks)
    : loop_(loop),
      path_(plan.file),
      local_addr_(plan.local_addr),
      run_id_(std::move(run_id)),
      listen_(std::move(listen)),
      callbacks_(std::move(callbacks)) {}

FileDiscovery::~FileDiscovery() {
  abandon_work();
  let_go();
}

// The pool may be writing through the lock: then the lock is left when that is over.
void FileDiscovery::abandon_work() {
  if (!work_) return;
  work_->abandoned = true;
  work_.reset();
  lock_.reset();
}

void FileDiscovery::let_go() {
  store_.reset();
  leave_in_pool(loop_, std::exchange(lock_, nullptr));
}

void FileDiscovery::find() {
  backoff_ = kFirstRetry;
  timer_.reset();
  lookup_.reset();
  // A look under way is as good as a new one.
  if (work_ && !lock_) return;
  abandon_work();
  let_go();
  look();
}

void FileDiscovery::look() {
  auto work = work_ = std::make_shared<Work>();
  run_in_pool(
      loop_, [work, path = path_] { work->opened = open_meeting_file(path); },
      [this, work, &loop = loop_] {
        if (!work->abandoned) return looked(*work);
        if (work->opened)
          leave_in_pool(loop, std::make_shared<UniqueFd>(std::move(work->opened->lock)));
      });
}

void FileDiscovery::looked(Work& work) {
  const auto keep = std::exchange(work_, nullptr);
  if (!work.opened) {
    const Error& error = work.opened.error();
    return meeting_file_may_heal(error.code) ? try_again(error.message) : failed(error);
  }
  if (work.opened->lock) return host_here(std::move(work.opened->lock));
  const std::optional<MeetingNote> note = read_meeting_note(work.opened->content);
  if (!note) return try_again("file " + path_ + ": no host has written where it is yet");
  if (note->run_id != run_id_)
    return try_again("file " + path_ + ": another run meets there, '" + note->run_id + "'");
  go_there(*note);
}

void FileDiscovery::host_here(UniqueFd lock) {
  lock_ = std::make_shared<UniqueFd>(std::move(lock));
  const bool literal = SocketAddress::parse(local_addr_, 0).has_value();
  auto store = listen_(literal ? local_addr_ : "::", 0);
  if (!store) return failed(store.error());
  store_ = std::move(*store);
  // Agents may come as soon as the note is there, before the owner hears of it.
  store_->hold_strangers();
  MeetingNote note{run_id_, local_addr_, {}, store_->port()};
  if (literal) note.addresses = {local_addr_};
  if (local_addr_.empty()) {
    for (const SocketAddress& address : reachable_addresses())
      note.addresses.push_back(address.host());
    note.addresses.resize(std::min(note.addresses.size(), kMaxMeetingAddresses));
    note.host = note.addresses.empty() ? "127.0.0.1" : note.addresses.front();
  }
  host_ = note.host;
  auto work = work_ = std::make_shared<Work>();
  run_in_pool(
      loop_,
      [work, lock = lock_, path = path_, text = meeting_note_text(note)] {
        work->written = write_meeting_note(*lock, path, text);
      },
      [this, work, lock = lock_, &loop = loop_] {
        if (!work->abandoned) return written(work->written);
        leave_in_pool(loop, lock);
      });
}

void FileDiscovery::written(const Result<void>& result) {
  const auto keep = std::exchange(work_, nullptr);
  if (!result) return failed(result.error());
  Found here;
  here.port = store_->port();
  here.store = std::move(store_);
  here.host = host_;
  found(std::move(here));
}

void FileDiscovery::go_there(const MeetingNote& note) {
  if (note.addresses.empty()) {
    lookup_ = resolve(loop_, note.host,
                      [this, note](const auto& addresses) { name_resolved(note, addresses); });
    return;
  }
  Found there;
  there.addresses = note.addresses;
  there.port = note.port;
  there.host = note.host;
  found(std::move(there));
}

void FileDiscovery::name_resolved(MeetingNote note,
                                  const Result<std::vector<SocketAddress>>& addresses) {
  if (!addresses) return try_again(addresses.error().message);
  for (const SocketAddress& address : *addresses)
    note.addresses.push_back(address.host());
  go_there(note);
}

void FileDiscovery::try_again(const std::string& why) {
  timer_ = Timer::start(loop_, backoff_, [this] { look(); });
  backoff_ = std::min(backoff_ * 2, kLastRetry);
  if (why == step_) return;
  step_ = why;
  const auto on_step = callbacks_.on_step;
  on_step(std::string(why));
}

void FileDiscovery::found(Found found) {
  step_.clear();
  const auto on_found = callbacks_.on_found;
  on_found(std::move(found));
}

void FileDiscovery::failed(const Error& error) {
  let_go();
  const auto on_failed = callbacks_.on_failed;
  on_failed(Error(error));
}

}  // namespace muster
