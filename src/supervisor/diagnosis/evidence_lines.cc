// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/evidence_lines.h"

#include <algorithm>
#include <iterator>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/text_pattern.h"

namespace muster {

namespace {

constexpr size_t kMaxLine = 300;        // characters
constexpr size_t kMaxLastLines = 6;     // of both streams
constexpr size_t kMaxOutputLine = 200;  // characters

// Binary units, as limits of memory are given.
std::string memory_words(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  int64_t tenths = bytes * 10;
  for (; tenths >= 10'240 && unit + 1 < std::size(kUnits); ++unit)
    tenths /= 1024;
  std::string text = std::to_string(tenths / 10);
  if (tenths < 1000 && tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + " " + kUnits[unit];
}

std::string cgroup_line(const MemoryTrouble& memory) {
  std::string text = memory.cgroup.empty() ? "the machine" : "cgroup " + memory.cgroup;
  text += ": killed " + std::to_string(memory.oom_kills) +
          (memory.oom_kills == 1 ? " process" : " processes") + " for want of memory";
  if (memory.limit_bytes > 0) text += ", limit " + memory_words(memory.limit_bytes);
  return clean_line(text);
}

bool tells_of_oom(const std::string& line) {
  return match_text("Killed process", line) || match_text("oom-kill:", line) ||
         match_text("Out of memory:", line);
}

// Xid numbers that NVIDIA documents as faults of the hardware or its links. Others (13, 31, 43, 45)
// are what a program's own mistake looks like to the driver.
bool tells_of_gpu_fault(const std::string& line) {
  const std::optional<TextMatch> match = match_text("NVRM: Xid (*): #,", line);
  if (!match) return false;
  constexpr std::string_view kFaults[] = {"46", "48", "54", "61", "62",  "63",  "64",  "74",
                                          "79", "92", "94", "95", "119", "120", "140", "143"};
  return std::find(std::begin(kFaults), std::end(kFaults), match->ranks) != std::end(kFaults);
}

bool about_memory(std::string_view kind) {
  return kind == "oom_kill" || kind == "killed" || kind == "memory_error" ||
         kind == "data_worker_died";
}

// Only if both streams are among them: the excerpt shows the end of one already. Not of a worker
// that muster had stopped: what it wrote then is about the stop.
void add_last_lines(const Evidence& evidence, std::vector<std::string>& lines) {
  if (evidence.stopped_for != StopReason::kNone) return;
  const size_t room = event::kMaxEvidenceLines - lines.size();
  const size_t most = std::min(kMaxLastLines, room > 0 ? room - 1 : 0);
  std::vector<std::string> last;
  bool from_out = false;
  bool from_err = false;
  for (size_t i = evidence.last_lines.size(); i > 0 && last.size() < most; --i) {
    const OutputLine& line = evidence.last_lines[i - 1];
    const std::string text = clean_line(line.text);
    if (is_blank(text)) continue;
    const bool out = line.stream == Stream::kStdout;
    (out ? from_out : from_err) = true;
    last.push_back((out ? "stdout: " : "stderr: ") + cut_line(text, kMaxOutputLine));
  }
  if (!from_out || !from_err) return;
  lines.emplace_back(kLastLinesHeading);
  lines.insert(lines.end(), last.rbegin(), last.rend());
}

}  // namespace

std::optional<FoundLine> memory_line(const Evidence& evidence) {
  const auto& lines = evidence.kernel_lines;
  if (auto found = std::find_if(lines.begin(), lines.end(), tells_of_oom); found != lines.end()) {
    return FoundLine{clean_line(*found), "kernel log"};
  }
  if (evidence.memory && evidence.memory->oom_kills > 0) {
    return FoundLine{cgroup_line(*evidence.memory), "cgroup"};
  }
  return std::nullopt;
}

std::string disk_line(const FullDisk& disk) {
  const bool no_files = disk.free_files == 0;
  return clean_line(disk.path + " has no room: " +
                    (no_files ? "no inode is free" : memory_words(disk.free_bytes) + " left"));
}

std::optional<FoundLine> gpu_fault_line(const Evidence& evidence) {
  const auto& lines = evidence.kernel_lines;
  auto found = std::find_if(lines.begin(), lines.end(), tells_of_gpu_fault);
  if (found == lines.end()) return std::nullopt;
  return FoundLine{clean_line(*found), "kernel log"};
}

std::vector<std::string> evidence_lines(const Evidence& evidence, std::string_view kind) {
  std::vector<std::string> lines;
  auto add = [&](const std::string& line) {
    if (lines.size() < event::kMaxEvidenceLines) lines.push_back(cut_line(line, kMaxLine));
  };
  if (evidence.memory && evidence.memory->oom_kills > 0) add(cgroup_line(*evidence.memory));
  for (const FullDisk& disk : evidence.full_disks)
    add(disk_line(disk));
  if (!evidence.silent_folder.empty())
    add("the file system of " + clean_line(evidence.silent_folder) + " does not answer");
  if (!evidence.store_wait.empty())
    add("it waited in the store for " + clean_line(evidence.store_wait));
  if (!evidence.recording.empty())
    add("its last collectives, by PyTorch's flight recorder: " + clean_line(evidence.recording));
  // It had that much at most: worth a line where memory is the question.
  if (evidence.max_rss_kib > 0 && about_memory(kind))
    add("most memory that it had: " + memory_words(evidence.max_rss_kib * 1024));
  if (!evidence.gpu_trouble.empty()) add(clean_line(evidence.gpu_trouble));
  if (!evidence.core.empty()) add("core dump: " + clean_line(evidence.core));
  for (const std::string& line : evidence.kernel_lines)
    add("kernel: " + clean_line(line));
  add_last_lines(evidence, lines);
  return lines;
}

}  // namespace muster
