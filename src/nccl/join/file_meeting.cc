// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "nccl/join/file_admission.h"
#include "nccl/join/file_store.h"
#include "nccl/join/meeting_point.h"
#include "nccl/join/roll_call.h"

namespace muster::comm::detail {

namespace {

Error joining_error(const muster::Error& error) {
  ErrorCode code = ErrorCode::kSystem;
  if (error.code == EEXIST) code = ErrorCode::kMismatch;  // file_admission's
  if (error.code == EINVAL) code = ErrorCode::kInvalidArgument;
  if (error.code == ETIMEDOUT) code = ErrorCode::kTimeout;
  return Error{code, "joining: " + error.message};
}

class FileMeeting final : public MeetingPoint {
 public:
  FileMeeting(const Place& place, const Identity& identity, std::unique_ptr<FileStore> store)
      : place_(place), identity_(identity), store_(std::move(store)) {}

  muster::Store& store() override { return *store_; }

  Result<std::shared_ptr<muster::Store>> open_store(Duration timeout) override {
    muster::Result<std::unique_ptr<muster::Store>> copy = store_->clone();
    if (!copy) return store_error(copy.error(), "opening the file once more");
    (*copy)->set_timeout(timeout);
    return std::shared_ptr<muster::Store>(std::move(*copy));
  }

  std::string address() const override { return ""; }

  Result<void> leave(const std::string&, Deadline deadline) override {
    store_->set_timeout(time_left(deadline));
    const std::pair<std::string, std::string> gone[] = {leaving_record(place_)};
    const muster::Result<void> left = store_->leave(
        gone, [&](const Table& table) { return nobody_left(table, place_, identity_); });
    if (!left) return store_error(left.error(), "leaving");
    return {};
  }

 private:
  const Place place_;
  const Identity identity_;
  std::unique_ptr<FileStore> store_;
};

}  // namespace

Result<std::unique_ptr<MeetingPoint>> meet_at_file(const Venue& venue, const Place& place,
                                                   const Identity& identity, Deadline deadline) {
  auto store =
      FileStore::open(venue.path, time_left(deadline), [&](const Table& table, bool local_disk) {
        return admission(table, local_disk, place, identity, venue.to_string());
      });
  if (!store) return joining_error(store.error());
  return std::unique_ptr<MeetingPoint>(
      std::make_unique<FileMeeting>(place, identity, std::move(*store)));
}

}  // namespace muster::comm::detail
