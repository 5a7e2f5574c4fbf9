// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_choice.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace muster {

namespace {

// A request names at most this many ranges; a rank list for more is written with fewer.
constexpr size_t kMaxRanges = 4'096;

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number < 0 ? std::nullopt : std::optional(number);
}

// Nothing: a word that is no stream.
std::optional<std::vector<Stream>> parse_streams(std::string_view text) {
  bool out = false;
  bool err = false;
  while (true) {
    const std::string_view name = text.substr(0, text.find(','));
    const std::optional<Stream> stream = stream_named(name);
    if (!stream) return std::nullopt;
    (*stream == Stream::kStdout ? out : err) = true;
    if (name.size() == text.size()) break;
    text.remove_prefix(name.size() + 1);
  }
  std::vector<Stream> streams;
  if (out) streams.push_back(Stream::kStdout);
  if (err) streams.push_back(Stream::kStderr);
  return streams;
}

std::string path_in(const std::string& run_dir, const ChosenLog& log) {
  return run_dir + "/attempt_" + std::to_string(log.attempt) + "/" +
         std::to_string(log.local_rank) + "/" + std::string(stream_name(log.stream)) + ".log";
}

const AttemptState* find_attempt(const JobState& state, int number) {
  const auto found = std::find_if(state.attempts.begin(), state.attempts.end(),
                                  [&](const AttemptState& a) { return a.attempt == number; });
  return found == state.attempts.end() ? nullptr : &*found;
}

// The run's folder on that node, "" if it is not known.
std::string folder_on(const JobState& state, const AttemptState& attempt, int node) {
  for (const event::NodeSpan& span : attempt.nodes) {
    const auto known = state.node_at.find(span.id);
    if (span.node != node || known == state.node_at.end()) continue;
    return state.nodes[known->second].joined.log_dir;
  }
  return "";
}

// Where logs of an attempt's nodes are had on this machine. Those of other nodes are when the run
// is over and its nodes shared a file system: every node's folder has a name of its own. While it
// runs the node itself is asked, so that no file system is waited for.
class Folders {
 public:
  Folders(const JobSource& source, const AttemptState& attempt)
      : source_(source), attempt_(attempt) {}

  // "" if they are not, or if no logs are kept.
  const std::string& of(int node) {
    const auto [entry, is_new] = folders_.try_emplace(node);
    if (is_new) entry->second = look(node);
    return entry->second;
  }

 private:
  std::string look(int node) const {
    if (node == attempt_.node) return source_.run_dir();
    if (source_.live()) return "";
    std::string folder = folder_on(source_.state(), attempt_, node);
    const bool there = !folder.empty() && ::access((folder + "/events.jsonl").c_str(), R_OK) == 0;
    return there ? folder : "";
  }

  const JobSource& source_;
  const AttemptState& attempt_;
  std::map<int, std::string> folders_;
};

ChosenLog log_of(Folders& folders, const AttemptState& attempt, const RankState& rank,
                 Stream stream) {
  ChosenLog log;
  log.attempt = attempt.attempt;
  log.rank = rank.rank;
  log.local_rank = rank.local_rank;
  log.node = rank.node;
  log.stream = stream;
  log.host = attempt.host_of(rank.rank);
  const std::string& folder = folders.of(rank.node);
  log.here = rank.node == attempt.node || !folder.empty();
  if (!folder.empty()) log.path = path_in(folder, log);
  return log;
}

}  // namespace

std::string_view stream_name(Stream stream) {
  return stream == Stream::kStdout ? "stdout" : "stderr";
}

std::optional<Stream> stream_named(std::string_view name) {
  if (name == "stdout") return Stream::kStdout;
  if (name == "stderr") return Stream::kStderr;
  return std::nullopt;
}

std::optional<RankList> parse_rank_list(std::string_view text) {
  RankList ranges;
  while (ranges.size() < kMaxRanges) {
    const std::string_view part = text.substr(0, text.find(','));
    const size_t dash = part.find('-');
    const std::optional<int> first = number_in(part.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    ranges.emplace_back(*first, *last);
    if (part.size() == text.size()) return ranges;
    text.remove_prefix(part.size() + 1);
  }
  return std::nullopt;
}

bool in_rank_list(const RankList& ranges, int rank) {
  return std::any_of(ranges.begin(), ranges.end(), [rank](const std::pair<int, int>& range) {
    return rank >= range.first && rank <= range.second;
  });
}

std::optional<ChosenLog> find_log(const JobSource& source, int attempt, int rank, Stream stream) {
  const AttemptState* in = find_attempt(source.state(), attempt);
  const RankState* known = in == nullptr ? nullptr : in->find(rank);
  if (known == nullptr) return std::nullopt;
  Folders folders(source, *in);
  return log_of(folders, *in, *known, stream);
}

std::string log_place(const JobState& state, const ChosenLog& log) {
  const AttemptState* attempt = find_attempt(state, log.attempt);
  const std::string folder = attempt ? folder_on(state, *attempt, log.node) : "";
  return log.host + ":" + path_in(folder.empty() ? "RUN_DIR" : folder, log);
}

Result<std::vector<const AttemptState*>> choose_attempts(const JobState& state,
                                                         const HttpServerRequest& request,
                                                         DefaultAttempts attempts) {
  std::vector<const AttemptState*> chosen;
  const std::string_view named = request.parameter("attempt").value_or("");
  if (!named.empty()) {
    const std::optional<int> number = number_in(named);
    if (!number) return Error{400, "attempt= is the number of an attempt"};
    const AttemptState* found = find_attempt(state, *number);
    if (found == nullptr) {
      return Error{404, "there is no attempt " + std::to_string(*number) + " so far"};
    }
    chosen.push_back(found);
  } else if (attempts == DefaultAttempts::kAll) {
    for (const AttemptState& attempt : state.attempts)
      chosen.push_back(&attempt);
  } else if (state.current() != nullptr) {
    chosen.push_back(state.current());
  }
  return chosen;
}

Result<std::vector<ChosenLog>> choose_logs(const JobSource& source,
                                           const HttpServerRequest& request,
                                           DefaultAttempts attempts) {
  Result<std::vector<const AttemptState*>> chosen =
      choose_attempts(source.state(), request, attempts);
  if (!chosen) return chosen.error();
  std::optional<RankList> ranges;
  if (const auto text = request.parameter("ranks").value_or(""); !text.empty()) {
    ranges = parse_rank_list(text);
    if (!ranges) return Error{400, "ranks= is a list like 0-7,9"};
  }
  const auto streams = parse_streams(request.parameter("streams").value_or("stdout,stderr"));
  if (!streams) return Error{400, "streams= is stdout, stderr or stdout,stderr"};

  std::vector<ChosenLog> logs;
  for (const AttemptState* attempt : *chosen) {
    Folders folders(source, *attempt);
    for (const RankState& rank : attempt->ranks) {
      if (ranges && !in_rank_list(*ranges, rank.rank)) continue;
      for (Stream stream : *streams)
        logs.push_back(log_of(folders, *attempt, rank, stream));
    }
  }
  if (logs.empty() && ranges) return Error{404, "none of these ranks is known here"};
  return logs;
}

}  // namespace muster
