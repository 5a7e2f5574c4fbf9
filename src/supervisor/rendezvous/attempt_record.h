// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/diagnosis/causes.h"
#include "supervisor/rendezvous/coordinator.h"

namespace muster {

// "closed", "silent", "left"; and the same as the end of a sentence about a node.
std::string_view lost_name(Coordinator::Lost how);
std::string lost_text(const std::string& host, Coordinator::Lost how);

// What has happened in one attempt, in the order in which it arrived here, and what to make of it.
// Owned by the coordinator, which tells it of its members by their GROUP_RANK.
class AttemptRecord {
 public:
  struct Member {
    std::string host;
    int first_rank = 0;
    int workers = 0;
  };

  // What ended the attempt: find_causes() over the failures of all nodes, in the order of their
  // times on the coordinator's clock (where none are known, of the news), with two exceptions.
  // - If a node was lost, that is the root whatever else failed before or after: a connection that
  //   breaks makes workers elsewhere fail within the same moment, and silence is noticed seconds
  //   after it began. It is not if its connection was closed after a failure that was told by
  //   itself or that no lost peer explains, such as a crash: then it comes after that.
  // - What fails after a stop was ordered, because of a signal or a node that came or left, has
  //   failed because of that: workers that stop first tear the connections of the others. There is
  //   no failure then. (One node alone is stricter only in that it knows the order of deaths.)
  struct Findings {
    std::optional<event::FailureFound> root;
    // Independent causes, first first, then victims by cause; at most kMaxOtherCauses.
    std::vector<event::FailureFound> others;
    std::vector<event::VictimGroup> victims;  // at most kMaxVictimGroups
    bool charged = false;                     // a worker is to blame: the restart counts
    bool left_running = false;                // something could not be ended ...
    std::string left_running_host;            // ... there, among others
    std::string trouble;                      // "node-b: cannot create ...", "" for none
    int64_t step = -1;                        // the highest that was reached, -1: unknown
    event::CollectivesFound collectives;      // who kept whom waiting, from the pages of all nodes
  };

  AttemptRecord(int number, std::vector<Member> members);

  int number() const { return number_; }
  size_t size() const { return members_.size(); }
  const Member& member(int node) const { return members_[static_cast<size_t>(node)].facts; }

  // Each of these once for a member; repetitions are ignored.
  void failed(int node, event::FailureFound preliminary);
  void settled(int node, NodeOutcome outcome);
  // Its stop takes long; what is known of it by now.
  void ending(int node, NodeOutcome so_far);
  // Only for one that has not settled: whose work is done may go.
  void gone(int node, Coordinator::Lost how);
  // All are being stopped for another reason than a failure.
  void stop_ordered();
  // All are being stopped because this rank hangs, or the whole job (-1). That is the root then,
  // unless a node is lost; what fails after it fails because of the stop.
  void hung(event::FailureFound found);

  bool has_failed(int node) const { return part(node).notice.has_value(); }
  bool over() const { return open_ == 0; }  // every member has settled or is gone
  bool all_complete() const { return complete_ == members_.size(); }
  bool any_complete() const { return complete_ > 0; }
  std::vector<std::string> gone_hosts() const;

  // The root while some are still being stopped, once: when all who have not settled have said what
  // is known by now. It must have ended by itself and show a failure of its own, and nobody may
  // blame a rank of which more may be heard; a lost node may explain it yet. From then on it is the
  // root of findings(), whatever comes.
  std::optional<event::FailureFound> find_early();

  Findings findings() const;

 private:
  friend struct CoordinatorFingerprint;  // of the test that explores all states
  struct Part {
    Member facts;
    bool open = true;
    std::optional<Coordinator::Lost> gone;
    std::optional<event::FailureFound> notice;
    std::optional<NodeOutcome> outcome;
    std::optional<NodeOutcome> so_far;  // of one that has not settled
  };
  struct Arrival {
    int node = 0;
    bool loss = false;  // else a failure
  };
  const Part& part(int node) const { return members_[static_cast<size_t>(node)]; }
  void close(Part& member);
  bool was_lost(int node) const;
  bool in_time(size_t arrival) const { return !stopped_at_ || arrival < *stopped_at_; }
  std::optional<size_t> first_loss() const;
  bool loss_explains(size_t loss, const event::FailureFound& root) const;
  event::FailureFound loss_of(int node) const;
  std::vector<event::FailureFound> failures_of(int node) const;
  std::vector<event::FailureFound> failures(bool before_the_stop) const;
  AttemptEnds ends(const event::CollectivesFound& collectives) const;
  static std::vector<int> ranks_of(const Part& member, std::string NodeOutcome::*ranges);
  void add_unknown(AttemptEnds& ends) const;
  void place(event::FailureFound& failure) const;
  bool stays(const event::FailureFound& root) const;
  void find_guilty(Findings& findings) const;
  std::vector<event::VictimGroup> victims(const Findings& findings) const;
  event::CollectivesFound collectives() const;

  int number_;
  std::vector<Part> members_;
  std::vector<Arrival> arrivals_;
  size_t open_ = 0;
  size_t complete_ = 0;
  size_t ending_ = 0;  // of those that are open have said what is known by now
  bool looked_early_ = false;
  std::optional<event::FailureFound> told_;  // the root, early
  std::optional<size_t> stopped_at_;         // so many had arrived when a stop was ordered
  std::optional<event::FailureFound> hung_;
};

}  // namespace muster
