// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/gather.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "loop/pool.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"
#include "supervisor/diagnosis/judge.h"
#include "supervisor/job/known_operations.h"
#include "supervisor/job/recording.h"

namespace muster {

namespace {

// An error file holds one traceback; a larger one is cut, and then said to be unreadable.
constexpr int64_t kMaxErrorFile = 4 * 1024 * 1024;
// How long a file system that stalls may keep the verdict waiting; after that it is given without
// what the files would have told.
constexpr Milliseconds kPatience{10'000};
// How much longer than for the files it waits for the look at the surroundings, which tells less.
constexpr Milliseconds kLookPatience{500};

// Up to `limit` bytes of a file, from its end or its start. Nothing if it cannot be opened.
std::optional<std::string> read_part(const std::string& path, int64_t limit, bool from_end) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  int64_t size = std::min<int64_t>(info.st_size, limit);
  std::string text(static_cast<size_t>(size), '\0');
  int64_t offset = from_end ? info.st_size - size : 0;
  ssize_t got = ::pread(fd.get(), text.data(), text.size(), offset);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// More than are shown: some are blank.
constexpr size_t kLastLines = 20;

struct Item {
  Evidence evidence;
  std::string stdout_path;
  std::string stderr_path;
  std::shared_ptr<const UniqueFd> page;
};

void read_files(Item& item) {
  Evidence& e = item.evidence;
  // A stream that the worker writes to its file itself never passed through us.
  if (e.stdout_tail.empty()) {
    e.stdout_tail =
        read_part(item.stdout_path, static_cast<int64_t>(kTailBytes), true).value_or("");
  }
  if (e.stderr_tail.empty()) {
    e.stderr_tail =
        read_part(item.stderr_path, static_cast<int64_t>(kTailBytes), true).value_or("");
  }
  e.wrote_output = e.wrote_output || !e.stdout_tail.empty() || !e.stderr_tail.empty();
  if (item.page) e.broken_operation = ended_in_broken_operation(*item.page);
  if (e.error_file.empty()) return;
  const std::string recording = dump_of(e.error_file, e.rank);
  if (::access(recording.c_str(), F_OK) == 0) e.recording = recording;
  if (auto text = read_part(e.error_file, kMaxErrorFile, false)) {
    e.error_file_present = true;
    e.error_file_text = std::move(*text);
  }
}

std::vector<Evidence> evidence_of(const std::vector<Item>& items) {
  std::vector<Evidence> evidence;
  evidence.reserve(items.size());
  for (const Item& item : items)
    evidence.push_back(item.evidence);
  return evidence;
}

// Shared by the pool's answers and the timer: when both answers are there, or the time is up, it is
// told what there is.
struct Gathering {
  std::shared_ptr<std::vector<Item>> items;  // the pool's until files_read
  std::vector<Evidence> without_files;
  std::shared_ptr<Look> look;  // null: nobody died of himself
  bool files_read = false;
  bool looked = false;
  std::function<void(std::vector<Evidence>)> on_gathered;
  Owned<Timer> patience;

  void finish() {
    auto tell = std::exchange(on_gathered, nullptr);
    // The timer's callback holds us, and we hold the timer.
    auto stopped = std::move(patience);
    if (!tell) return;
    std::vector<Evidence> evidence = files_read ? evidence_of(*items) : std::move(without_files);
    if (look) look->add_to(evidence);
    tell(std::move(evidence));
  }
};

bool any_cause(const std::vector<Evidence>& dead) {
  return std::any_of(dead.begin(), dead.end(), [](const Evidence& e) { return !is_victim(e); });
}

void read_in_pool(Loop& loop, const std::shared_ptr<Gathering>& gathering) {
  auto wait = [&loop, gathering](Milliseconds patience) {
    gathering->patience = Timer::start(loop, patience, [gathering] { gathering->finish(); });
  };
  wait(kPatience);
  run_in_pool(
      loop,
      [items = gathering->items] {
        for (Item& item : *items)
          read_files(item);
      },
      [gathering, wait] {
        if (!gathering->on_gathered) return;
        gathering->files_read = true;
        if (gathering->looked) return gathering->finish();
        wait(kLookPatience);
      });
  if (!gathering->look) {
    gathering->looked = true;
    return;
  }
  run_in_pool(
      loop, [look = gathering->look] { look->run(); },
      [gathering] {
        gathering->looked = true;
        if (gathering->files_read) gathering->finish();
      });
}

Item item_for(const AttemptState& attempt, int local_rank, const JobLogs& logs) {
  Item item;
  Evidence& e = item.evidence;
  e.attempt = attempt.attempt;
  e.local_rank = local_rank;
  e.error_file = logs.error_file(local_rank);
  e.stdout_tail = logs.tail(local_rank, Stream::kStdout);
  e.stderr_tail = logs.tail(local_rank, Stream::kStderr);
  for (StreamLine& line : logs.last_lines(local_rank, kLastLines))
    e.last_lines.push_back({line.stream, std::move(line.text)});
  item.stdout_path = logs.log_file(local_rank, Stream::kStdout);
  item.stderr_path = logs.log_file(local_rank, Stream::kStderr);
  return item;
}

Item item_for(const AttemptState& attempt, const RankState& rank, const JobLogs& logs,
              const WorkerPages& pages, const Surroundings& surroundings) {
  Item item = item_for(attempt, rank.local_rank, logs);
  Evidence& e = item.evidence;
  e.rank = rank.rank;
  e.pid = rank.pid;
  e.wait_status = rank.wait_status;
  e.stopped_for = rank.stopped_for;
  e.stop_signal = rank.stop_signal;
  e.wrote_output = rank.wrote_stdout || rank.wrote_stderr;
  e.max_rss_kib = rank.max_rss_kib;
  surroundings.fill(e);
  item.page = pages.find(rank.local_rank);
  return item;
}

}  // namespace

std::vector<Folder> worker_folders(const LaunchPlan& plan, const JobLogs& logs) {
  return {{"/dev/shm", ""},
          {lookup(plan.inherited, "TMPDIR").value_or("/tmp"), "TMPDIR"},
          {logs.run_dir(), "logs"},
          {lookup(plan.inherited, "HOME").value_or(""), "HOME"}};
}

void look_at(Loop& loop, const AttemptState& attempt, const RankState& dead, const JobLogs& logs,
             const WorkerPages& pages, const Surroundings& surroundings,
             std::function<void(const Evidence&)> on_looked) {
  auto item = std::make_shared<Item>(item_for(attempt, dead, logs, pages, surroundings));
  run_in_pool(
      loop, [item] { read_files(*item); },
      [item, on_looked = std::move(on_looked)] { on_looked(item->evidence); });
}

void gather_evidence(Loop& loop, const AttemptState& attempt, const JobLogs& logs,
                     const WorkerPages& pages, Surroundings& surroundings,
                     const std::optional<event::SpawnFailed>& spawn_failed,
                     std::function<void(std::vector<Evidence>)> on_gathered) {
  auto items = std::make_shared<std::vector<Item>>();
  if (spawn_failed) {
    Item item = item_for(attempt, spawn_failed->local_rank, logs);
    item.evidence.rank = spawn_failed->rank;
    item.evidence.spawn_errno = spawn_failed->code;
    item.evidence.spawn_message = spawn_failed->message;
    items->push_back(std::move(item));
  }
  for (int dead : attempt.death_order) {
    const RankState& rank = *attempt.find(dead);
    if (rank.node != attempt.node || rank.phase != RankPhase::kExited || rank.wait_status == 0) {
      continue;
    }
    items->push_back(item_for(attempt, rank, logs, pages, surroundings));
  }
  auto gathering = std::make_shared<Gathering>();
  gathering->without_files = evidence_of(*items);
  gathering->items = std::move(items);
  gathering->on_gathered = std::move(on_gathered);
  if (any_cause(gathering->without_files)) {
    gathering->look = surroundings.begin_look(gathering->without_files);
  }
  read_in_pool(loop, gathering);
}

}  // namespace muster
