// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/unique_id.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "nccl/cuda/bounded.h"
#include "nccl/cuda/trouble.h"
#include "nccl/join/roll_call.h"

namespace muster::comm::detail {
namespace {

constexpr std::string_view kNew = "new ";
constexpr std::string_view kGrown = "grown ";
constexpr std::string_view kFailed = "failed ";
constexpr int kMaxRoots = 1024;

std::string key(int root) {
  return "nccl/id/" + std::to_string(root);
}

std::string bytes(const ncclUniqueId& id) {
  return std::string(id.internal, sizeof id.internal);
}

Result<void> publish(const BackendPlan& plan, int root, const std::string& value) {
  const muster::Result<void> set = plan.store->set(key(root), value);
  if (!set) return store_error(set.error(), "nccl: handing on a unique id");
  return {};
}

// Of the `root`-th root.
Result<std::string> fetch(const BackendPlan& plan, int root, int roots) {
  const std::string keys[] = {key(root)};
  const muster::Result<void> there = plan.store->wait(keys, time_left(plan.deadline));
  if (!there) {
    Error error = store_error(there.error(), "nccl: waiting for a unique id");
    if (error.code != ErrorCode::kTimeout) return error;
    const int rank = root_rank(root, roots, plan.size);
    const int world = plan.world_ranks.at(static_cast<size_t>(rank));
    error.message =
        "nccl: rank " + std::to_string(world) + " has not handed on its unique id by the deadline";
    error.ranks = {rank};
    return error;
  }
  muster::Result<std::string> value = plan.store->get(keys[0]);
  if (!value) return store_error(value.error(), "nccl: reading a unique id");
  return *std::move(value);
}

// ncclGetUniqueId opens interfaces and plug-ins, which has no bound of its own.
Result<ncclUniqueId> make_id(const NcclTable& nccl, Deadline deadline) {
  struct Answer {
    ncclResult_t result = ncclSuccess;
    ncclUniqueId id{};
  };
  const auto answer = std::make_shared<Answer>();
  const Ended ended = run_bounded(
      nullptr, deadline, [&nccl, answer] { answer->result = nccl.GetUniqueId(&answer->id); });
  if (ended != Ended::kDone) return late_error("ncclGetUniqueId");
  if (answer->result != ncclSuccess) return nccl_error(answer->result, "ncclGetUniqueId");
  return answer->id;
}

Result<ncclUniqueId> parse_id(std::string_view text, const std::string& whose) {
  ncclUniqueId id;
  if (text.size() != sizeof id.internal) {
    return Error{.code = ErrorCode::kMismatch,
                 .message = "nccl: the unique id of " + whose + " has " +
                            std::to_string(text.size()) + " bytes instead of " +
                            std::to_string(sizeof id.internal)};
  }
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  return id;
}

struct Header {
  bool grown = false;
  int roots = 1;
  ncclUniqueId first{};
};

Result<Header> parse_header(std::string_view text, const BackendPlan& plan) {
  const std::string whose = "rank " + std::to_string(plan.world_ranks.front());
  if (text.starts_with(kFailed)) {
    text.remove_prefix(kFailed.size());
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "nccl: " + whose + " could not begin: " + std::string(text),
                 .ranks = {0}};
  }
  Header header;
  header.grown = text.starts_with(kGrown);
  if (!header.grown && !text.starts_with(kNew)) return parse_id({}, whose).error();
  text.remove_prefix(header.grown ? kGrown.size() : kNew.size());
  const auto [end, failed] = std::from_chars(text.begin(), text.end(), header.roots);
  if (failed != std::errc() || end == text.end() || header.roots < 1 || header.roots > kMaxRoots) {
    return parse_id({}, whose).error();
  }
  text.remove_prefix(static_cast<size_t>(end - text.begin()) + 1);
  Result<ncclUniqueId> first = parse_id(text, whose);
  if (!first) return first.error();
  header.first = *first;
  return header;
}

int wanted_roots(const NcclTable& nccl, const BackendPlan& plan) {
  if (nccl.CommInitRankScalable == nullptr) return 1;
  return std::clamp(plan.options.init_roots, 1, std::min(plan.size, kMaxRoots));
}

Result<Header> first_id(const NcclTable& nccl, const BackendPlan& plan) {
  if (plan.rank != 0) {
    Result<std::string> text = fetch(plan, 0, 1);
    if (!text) return text.error();
    return parse_header(*text, plan);
  }
  Result<ncclUniqueId> id = make_id(nccl, plan.deadline);
  if (!id) return id.error();
  const int roots = wanted_roots(nccl, plan);
  const Result<void> published =
      publish(plan, 0, std::string(kNew) + std::to_string(roots) + " " + bytes(*id));
  if (!published) return published.error();
  return Header{.roots = roots, .first = *id};
}

}  // namespace

int root_rank(int root, int roots, int size) {
  return static_cast<int>(int64_t{root} * size / roots);
}

Result<Ids> exchange_ids(const NcclTable& nccl, const BackendPlan& plan) {
  Result<Header> header = first_id(nccl, plan);
  if (!header) return header.error();
  Ids ids{.grown = header->grown, .ids = {header->first}};
  // All roots publish before any waits.
  for (int root = 1; root < header->roots; ++root) {
    if (root_rank(root, header->roots, plan.size) != plan.rank) continue;
    Result<ncclUniqueId> id = make_id(nccl, plan.deadline);
    if (!id) return id.error();
    const Result<void> published = publish(plan, root, bytes(*id));
    if (!published) return published.error();
  }
  for (int root = 1; root < header->roots; ++root) {
    Result<std::string> text = fetch(plan, root, header->roots);
    if (!text) return text.error();
    const int rank = root_rank(root, header->roots, plan.size);
    Result<ncclUniqueId> id = parse_id(*text, "rank " + std::to_string(plan.world_ranks[rank]));
    if (!id) return id.error();
    ids.ids.push_back(*id);
  }
  return ids;
}

Result<void> publish_grown(const BackendPlan& plan, const ncclUniqueId& id) {
  return publish(plan, 0, std::string(kGrown) + "1 " + bytes(id));
}

void publish_failure(const BackendPlan& plan, const Error& error) {
  // Whether it arrives changes nothing here.
  if (plan.rank == 0) (void)publish(plan, 0, std::string(kFailed) + error.message);
}

}  // namespace muster::comm::detail
