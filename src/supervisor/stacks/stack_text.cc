// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/stack_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "supervisor/job/rank_ranges.h"

namespace muster {

namespace {

void add_native(std::string& text, const ThreadView& thread) {
  for (size_t i = 0; i < thread.native.size(); ++i) {
    const NativeFrame& frame = thread.native[i];
    text += "    #" + std::to_string(i) + " " + (frame.function.empty() ? "?" : frame.function);
    if (!frame.source.empty()) text += " at " + frame.source;
    if (!frame.module.empty()) text += " in " + frame.module;
    text += '\n';
  }
  if (!thread.native_trouble.empty()) {
    text += "    no native stack: " + thread.native_trouble + "\n";
  }
}

std::string where_in_kernel(const ThreadView& thread) {
  std::string where(state_words(thread.state));
  if (!thread.wait_channel.empty()) where += " in " + thread.wait_channel;
  if (!thread.system_call.empty()) where += " (" + thread.system_call + ")";
  return where;
}

void add_thread(std::string& text, const ThreadView& thread) {
  text += "  thread " + std::to_string(thread.tid) + " " + thread.name + ": " +
          where_in_kernel(thread) + "\n";
  for (const std::string& frame : thread.kernel)
    text += "    kernel: " + frame + "\n";
  add_native(text, thread);
}

void add_process(std::string& text, const ProcessView& process) {
  text += "\nprocess " + std::to_string(process.pid) + " " + process.name + "\n";
  if (process.threads.empty()) text += "  it is gone\n";
  if (!process.trouble.empty()) text += "  " + process.trouble + "\n";
  for (const std::string& line : process.python)
    text += "  python: " + line + "\n";
  for (const ThreadView& thread : process.threads)
    add_thread(text, thread);
  if (process.threads_left_out > 0) {
    text += "  and " + std::to_string(process.threads_left_out) + " more threads\n";
  }
}

}  // namespace

std::string rank_text(const RankView& view, const std::string& head) {
  std::string text = head + "\n";
  for (const ProcessView& process : view.processes)
    add_process(text, process);
  if (view.processes_left_out > 0) {
    text += "\nand " + std::to_string(view.processes_left_out) + " more processes\n";
  }
  return text;
}

std::string activity(const RankView& view) {
  if (view.processes.empty() || view.processes.front().threads.empty()) return "";
  return where_in_kernel(view.processes.front().threads.front());
}

std::vector<std::string> group_lines(const std::vector<RankActivity>& ranks) {
  std::map<std::string, std::vector<int>> by_text;
  for (const RankActivity& rank : ranks)
    by_text[rank.text].push_back(rank.rank);
  std::vector<std::pair<std::string, std::vector<int>>> groups(by_text.begin(), by_text.end());
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() > b.second.size();
    return a.second.front() < b.second.front();
  });
  // Of two equal halves neither is the odd one.
  const bool most = !groups.empty() && groups.front().second.size() * 2 > ranks.size();
  std::vector<std::string> lines;
  for (const auto& [text, members] : groups) {
    if (lines.size() + 1 == kMaxGroups && groups.size() > kMaxGroups) {
      lines.push_back("and " + std::to_string(groups.size() - lines.size()) + " more groups");
      break;
    }
    const bool differs = most && &members != &groups.front().second;
    std::string line = rank_ranges(members) + (differs ? " differs: " : ": ") +
                       (text.empty() ? "nothing could be seen" : text);
    if (members.size() > 1 && differs) line.replace(line.find(" differs"), 8, " differ");
    if (line.size() > kMaxGroupText) line.resize(kMaxGroupText);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace muster
