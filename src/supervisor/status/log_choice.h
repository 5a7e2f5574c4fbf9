// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/http_server.h"
#include "loop/result.h"
#include "supervisor/job/state.h"
#include "supervisor/status/job_source.h"

namespace muster {

// A stream of a worker, and where what it wrote is kept.
struct ChosenLog {
  int attempt = 0;
  int rank = 0;
  int local_rank = 0;
  int node = 0;  // GROUP_RANK in that attempt
  Stream stream = Stream::kStdout;
  std::string host;
  bool here = false;  // had on this machine
  std::string path;   // of its file; "" if it is not here, or if no logs are kept
};

std::string_view stream_name(Stream stream);  // "stdout"
std::optional<Stream> stream_named(std::string_view name);

// Inclusive ranges of ranks from "0-7,9", in the order given; nothing if it is not such a list.
using RankList = std::vector<std::pair<int, int>>;
std::optional<RankList> parse_rank_list(std::string_view text);
bool in_rank_list(const RankList& ranges, int rank);

// Where `stream` of `rank` is. Nothing if that attempt or rank is not known here.
std::optional<ChosenLog> find_log(const JobSource& source, int attempt, int rank, Stream stream);

// "node-b:/path/of/its/log", as far as the run's record tells.
std::string log_place(const JobState& state, const ChosenLog& log);

// The attempts that `attempt=` of a request asks for. The error's code is an HTTP status.
enum class DefaultAttempts { kCurrent, kAll };
Result<std::vector<const AttemptState*>> choose_attempts(const JobState& state,
                                                         const HttpServerRequest& request,
                                                         DefaultAttempts attempts);

// The logs that `attempt=`, `ranks=` and `streams=` of a request ask for: by attempt, then rank,
// stdout before stderr. Without them: both streams of all ranks, of the current attempt or of all.
// The error's code is an HTTP status.
Result<std::vector<ChosenLog>> choose_logs(const JobSource& source,
                                           const HttpServerRequest& request,
                                           DefaultAttempts attempts);

}  // namespace muster
