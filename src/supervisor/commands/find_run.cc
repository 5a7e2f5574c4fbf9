// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/find_run.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "supervisor/logs/retention.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr size_t kSuffix = sizeof("_abcdefgh") - 1;  // what makes a folder's name unique
constexpr size_t kMaxListed = 5;

struct Candidate {
  std::string path;
  std::string name;
  int64_t started_ns = 0;
  bool live = false;

  std::string run_id() const {
    return name.substr(0, name.size() - std::min(kSuffix, name.size()));
  }
};

bool is_run(const std::string& folder) {
  std::error_code error;
  return fs::exists(folder + "/events.jsonl", error) ||
         fs::exists(folder + "/" + kRunLockFile, error);
}

std::vector<Candidate> runs_in(const std::vector<std::string>& bases) {
  std::vector<Candidate> found;
  for (const std::string& base : bases) {
    for (const RunEntry& entry : list_runs(base))
      found.push_back({base + "/" + entry.name, entry.name, entry.started_ns, entry.live});
  }
  return found;
}

// Live ones first, then by their start.
bool newer(const Candidate& a, const Candidate& b) {
  if (a.live != b.live) return a.live;
  return a.started_ns > b.started_ns;
}

std::string listed(const std::vector<std::string>& bases) {
  std::string text;
  for (const std::string& base : bases)
    text += (text.empty() ? "" : " or ") + base;
  return text;
}

Result<std::string> newest(const std::vector<std::string>& bases, const std::string& hint) {
  const std::vector<Candidate> runs = runs_in(bases);
  if (runs.empty()) return Error{ENOENT, "there is no run in " + listed(bases) + hint};
  return std::min_element(runs.begin(), runs.end(), newer)->path;
}

Error ambiguous(const std::string& what, const std::vector<Candidate>& matching) {
  std::string text = "'" + what + "' is the beginning of several runs:";
  for (size_t i = 0; i < matching.size() && i < kMaxListed; ++i)
    text += "\n  " + matching[i].name + (matching[i].live ? "  (live)" : "");
  if (matching.size() > kMaxListed) {
    text += "\n  and " + std::to_string(matching.size() - kMaxListed) + " more";
  }
  return Error{EINVAL, text};
}

Result<std::string> by_name(const std::string& what, const std::vector<std::string>& bases) {
  std::vector<Candidate> matching;
  for (Candidate& run : runs_in(bases)) {
    if (run.name == what) return run.path;
    if (run.name.starts_with(what)) matching.push_back(std::move(run));
  }
  if (matching.empty()) {
    return Error{ENOENT, "there is no run '" + what +
                             "': no such folder here, and no run's name in " + listed(bases) +
                             " begins with it"};
  }
  std::sort(matching.begin(), matching.end(), newer);
  // Several runs may have one id: the newest of them is meant. A whole id is preferred.
  const auto whole = std::find_if(matching.begin(), matching.end(),
                                  [&](const Candidate& run) { return run.run_id() == what; });
  if (whole != matching.end()) return whole->path;
  const bool one_id = std::all_of(matching.begin(), matching.end(), [&](const Candidate& run) {
    return run.run_id() == matching.front().run_id();
  });
  if (!one_id) return ambiguous(what, matching);
  return matching.front().path;
}

}  // namespace

Result<std::string> find_run(const std::string& what, const std::vector<std::string>& bases) {
  if (what.empty()) {
    return newest(bases,
                  "; a run with --log-dir is named by its folder, one without files by its "
                  "address");
  }
  std::error_code error;
  const fs::file_status status = fs::status(what, error);
  if (fs::is_directory(status)) {
    if (is_run(what)) return what;
    if (!runs_in({what}).empty()) return newest({what}, "");
    // Not this folder then, but maybe a run of that name.
    if (auto named = by_name(what, bases); named) return named;
    return Error{ENOENT, what +
                             " is not a run's folder and has none in it: a run has an "
                             "events.jsonl, and names its folder in its first line (\"logs ...\")"};
  }
  if (fs::exists(status)) {
    return Error{ENOTDIR, what + " is a file: name the run's folder"};
  }
  if (what.find('/') != std::string::npos) {
    return errno_error(error && error.value() != 0 ? error.value() : ENOENT, what);
  }
  return by_name(what, bases);
}

}  // namespace muster
