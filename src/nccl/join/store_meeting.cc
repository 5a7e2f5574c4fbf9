// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <vector>

#include "nccl/join/meeting_point.h"
#include "nccl/join/roll_call.h"
#include "nccl/join/store_host.h"
#include "store/client.h"

namespace muster::comm::detail {

namespace {

// All ranks begin at about the same time, and rank 0 may host the store: the first attempts to
// reach it come soon after each other.
constexpr Duration kFirstPause{10};
constexpr Duration kLongestPause{1'000};
// How long a store may take to answer when the time of a wait is over.
constexpr Duration kLeastReplyTime{600};

StoreClient::Options client_options(const Venue& venue, Duration timeout, bool member) {
  StoreClient::Options options;
  options.host = venue.host;
  options.port = venue.port;
  options.timeout = timeout;
  options.count_as_member = member;
  options.least_reply_time = kLeastReplyTime;
  options.first_pause = kFirstPause;
  options.longest_pause = kLongestPause;
  return options;
}

class StoreMeeting final : public MeetingPoint {
 public:
  StoreMeeting(const Venue& venue, const Place& place, std::unique_ptr<StoreHost> host,
               std::unique_ptr<StoreClient> client)
      : venue_(venue), place_(place), host_(std::move(host)), client_(std::move(client)) {}

  muster::Store& store() override { return *client_; }

  Result<std::shared_ptr<muster::Store>> open_store(Duration timeout) override {
    StoreClient::Options options = client_options(venue_, timeout, false);
    options.once = true;
    auto client = StoreClient::connect(options);
    if (!client)
      return Error{ErrorCode::kStoreLost, venue_.to_string() + ": " + client.error().message};
    if (host_) host_->add_own((*client)->local_address());
    return std::shared_ptr<muster::Store>(std::move(*client));
  }

  std::string address() const override { return client_->local_address().host(); }

  Result<void> leave(const std::string& keys, Deadline deadline) override;

 private:
  Result<void> say_left(const std::string& keys, Deadline deadline);

  const Venue venue_;
  const Place place_;
  std::unique_ptr<StoreHost> host_;  // rank 0's, where nobody else has the store
  std::unique_ptr<StoreClient> client_;
};

// Each says that it is gone, and the last one that all are.
Result<void> StoreMeeting::say_left(const std::string& keys, Deadline deadline) {
  client_->set_timeout(time_left(deadline));
  const muster::Result<void> said = client_->set(keys + "/left/" + std::to_string(place_.rank), "");
  if (!said) return store_error(said.error(), "leaving " + venue_.to_string());
  const muster::Result<int64_t> count = client_->add(keys + "/left", 1);
  if (!count) return store_error(count.error(), "leaving " + venue_.to_string());
  if (*count != place_.size) return {};
  const muster::Result<void> told = client_->set(keys + "/all_left", "");
  if (!told) return store_error(told.error(), "leaving " + venue_.to_string());
  return {};
}

Result<void> StoreMeeting::leave(const std::string& keys, Deadline deadline) {
  if (!venue_.hosted) return {};
  Result<void> said = say_left(keys, deadline);
  if (!host_) {
    // Rank 0 may have gone before; nobody needs the store any more.
    return {};
  }
  if (!said) return said;
  if (host_->wait_until_over(keys + "/all_left", deadline)) return {};
  const std::vector<int> ranks = all_ranks(place_.size);
  const Result<std::vector<int>> missing =
      RollCall(*client_, keys + "/left", ranks, place_.rank, "leaving").missing();
  if (!missing) return missing.error();
  return Error{ErrorCode::kTimeout,
               "leaving " + venue_.to_string() + ": " + rank_names(*missing) +
                   " did not leave in time; the store ends here, with this process",
               *missing};
}

// Why the store was not reached.
Error not_reached(const muster::Error& error, const Venue& venue, const Place& place) {
  if (error.code != ETIMEDOUT) return Error{ErrorCode::kSystem, "joining: " + error.message};
  if (!venue.hosted)
    return Error{ErrorCode::kTimeout, "joining: nobody answers as a store: " + error.message};
  if (place.rank != 0)
    return Error{ErrorCode::kTimeout,
                 "joining: rank 0 of " + std::to_string(place.size) +
                     ", which is the store, has not arrived: " + error.message,
                 {0}};
  return Error{ErrorCode::kTimeout, "joining: this is rank 0 and its store listens at port " +
                                        std::to_string(venue.port) + ", but " + venue.host +
                                        " leads elsewhere: " + error.message};
}

}  // namespace

Result<std::unique_ptr<MeetingPoint>> meet_at_store(const Venue& venue, const Place& place,
                                                    Deadline deadline) {
  std::unique_ptr<StoreHost> host;
  if (venue.hosted && place.rank == 0) {
    Result<std::unique_ptr<StoreHost>> listening = StoreHost::listen(venue.port);
    if (!listening) return listening.error();
    host = std::move(*listening);
  }
  // A server of PyTorch may wait until as many members as ranks have come.
  auto client = StoreClient::connect(client_options(venue, time_left(deadline), true));
  if (!client) return not_reached(client.error(), venue, place);
  if (host) host->add_own((*client)->local_address());
  return std::unique_ptr<MeetingPoint>(
      std::make_unique<StoreMeeting>(venue, place, std::move(host), std::move(*client)));
}

}  // namespace muster::comm::detail
