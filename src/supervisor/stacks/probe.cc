// SPDX-License-Identifier: Apache-2.0
//
// The lines: "W" (a file was written), "R <rank> <activity>", "T <trouble>".
#include "supervisor/stacks/probe.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>

#include "loop/result.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/closing.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/rank_ranges.h"
#include "supervisor/stacks/native_stacks.h"
#include "supervisor/stacks/recordings.h"
#include "supervisor/stacks/stack_text.h"

namespace muster {

namespace {

constexpr size_t kMaxTroubles = 16;

class Probe {
 public:
  Probe(const ProbeOrder& order, const std::function<void(std::string_view)>& tell)
      : order_(order), tell_(tell), now_(utc_text(std::chrono::system_clock::now(), 3)) {}

  // The folder may be on a disk that does not answer: what can be told without it comes before.
  void run() {
    std::vector<RankView> views;
    views.reserve(order_.targets.size());
    for (const ProbeTarget& target : order_.targets) {
      views.push_back(view_rank(target.rank, target.pid, order_.proc));
      tell_activity(views.back());
    }
    make_folder();
    // They write while we look.
    Recordings recordings;
    for (const ProbeTarget& target : order_.targets)
      if (writes_) recordings.ask(target.rank, target.recording);
    for (const RankView& view : views)
      write(view);
    NativeStacks stacks;
    for (RankView& view : views) {
      stacks.add(view.processes.front());
      tell_activity(view);
    }
    tell_troubles(views);
    for (RankView& view : views) {
      write(view);
      if (view.processes.size() == 1) continue;
      for (size_t i = 1; i < view.processes.size(); ++i)
        stacks.add(view.processes[i]);
      write(view);
    }
    if (const std::vector<int> missing = recordings.collect(order_.folder); !missing.empty())
      trouble(rank_ranges(missing) + ": no answer from PyTorch's flight recorder");
  }

 private:
  void trouble(const std::string& message) { tell_("T " + clean_line(message)); }

  // Why a rank's own stack is missing, once for all that it is true of.
  void tell_troubles(const std::vector<RankView>& views) {
    std::map<std::string, std::vector<int>> ranks;
    for (const RankView& view : views) {
      const ProcessView& process = view.processes.front();
      const std::string why =
          process.threads.empty() ? "it is gone" : process.threads.front().native_trouble;
      if (!why.empty()) ranks[why].push_back(view.rank);
    }
    for (const auto& [why, of] : ranks)
      trouble(rank_ranges(of) + ": no native stack: " + why);
  }

  void tell_activity(const RankView& view) {
    tell_("R " + std::to_string(view.rank) + " " + clean_line(activity(view)));
  }

  void make_folder() {
    if (order_.folder.empty()) return;
    writes_ = ::mkdir(order_.folder.c_str(), 0755) == 0;
    const int error = errno;
    if (!writes_) trouble(errno_error(error, "make " + order_.folder).message);
  }

  void write(const RankView& view) {
    if (!writes_) return;
    const std::string rank = std::to_string(view.rank);
    const std::string head = "rank " + rank + " (pid " + std::to_string(view.pid) + ") on " +
                             order_.host + " at " + now_ + ": " + order_.why;
    Result<void> written =
        write_whole_file(order_.folder + "/rank_" + rank + ".txt", rank_text(view, head));
    if (written) return tell_("W");
    trouble(written.error().message);
  }

  const ProbeOrder& order_;
  const std::function<void(std::string_view)>& tell_;
  const std::string now_;
  bool writes_ = false;
};

}  // namespace

void run_probe(const ProbeOrder& order, const std::function<void(std::string_view)>& tell) {
  Probe(order, tell).run();
}

void ProbeAnswer::take(std::string_view line) {
  const std::string_view rest = line.size() > 2 ? line.substr(2) : std::string_view();
  if (line == "W") wrote = true;
  if (line.starts_with("T ") && troubles.size() < kMaxTroubles) troubles.emplace_back(rest);
  if (!line.starts_with("R ")) return;
  int rank = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  if (error != std::errc()) return;
  const auto at = static_cast<size_t>(end - rest.data());
  activity[rank] = rest.substr(std::min(rest.size(), at + 1));
}

}  // namespace muster
