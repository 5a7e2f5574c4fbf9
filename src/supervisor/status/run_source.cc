// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/run_source.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "loop/pool.h"
#include "loop/unique_fd.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/event_reader.h"
#include "supervisor/logs/retention.h"
#include "supervisor/status/address_file.h"
#include "supervisor/status/sample_history.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr size_t kReadBlock = size_t{64} << 10;
// A copied folder's files are as old as the copy. The lock file, made at the start and never
// written, tells: it is not younger than the job by more than this.
constexpr int64_t kStartSlackUs = 60'000'000;

int64_t modified_us(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return 0;
  return int64_t{info.st_mtim.tv_sec} * 1'000'000 + info.st_mtim.tv_nsec / 1000;
}

int64_t unix_us(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

// When a file of the run was last written, unix time; 0 if the files do not tell.
int64_t last_write_us(const std::string& run_dir, int attempt, int64_t started_us) {
  const int64_t made = modified_us(run_dir + "/" + kRunLockFile);
  if (made == 0 || made > started_us + kStartSlackUs) return 0;
  int64_t last =
      std::max(modified_us(run_dir + "/events.jsonl"), modified_us(run_dir + "/samples.jsonl"));
  std::error_code error;
  const fs::path logs = run_dir + "/attempt_" + std::to_string(attempt);
  for (fs::recursive_directory_iterator it(logs, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error)) last = std::max(last, modified_us(it->path().string()));
  }
  return last;
}

std::string owner_of(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return "somebody else";
  const passwd* entry = ::getpwuid(info.st_uid);
  return entry == nullptr ? "uid " + std::to_string(info.st_uid) : entry->pw_name;
}

Error cannot_open(const std::string& run_dir, int code) {
  struct stat info;
  if (code == EACCES || code == EPERM) {
    return Error{code, run_dir + ": permission denied; a run's folder can be read by its owner " +
                           "alone, here " + owner_of(run_dir) + ": ask there, or use the URL " +
                           "that the run printed"};
  }
  if (::stat(run_dir.c_str(), &info) != 0) return errno_error(errno, run_dir);
  if (!S_ISDIR(info.st_mode)) {
    return Error{ENOTDIR, run_dir + " is a file: name the run's folder, which has an events.jsonl"};
  }
  if (code != ENOENT) return errno_error(code, run_dir + "/events.jsonl");
  if (::access((run_dir + "/" + kRunLockFile).c_str(), F_OK) == 0) {
    return Error{ENOENT, run_dir + " has no events.jsonl: its muster ended before the job began"};
  }
  return Error{ENOENT, run_dir +
                           " is not a run's folder: it has no events.jsonl; a run names its " +
                           "folder in its first line (\"logs ...\")"};
}

Error no_event(const std::string& run_dir, int64_t damaged, int64_t unknown) {
  if (unknown > 0) {
    return Error{0, run_dir + " was written by a newer muster than this one (" MUSTER_VERSION
                              "): show it with that one"};
  }
  if (damaged > 0) return Error{0, run_dir + "/events.jsonl is damaged: no line is an event"};
  return Error{0, run_dir + "/events.jsonl is empty: its muster ended before the job began"};
}

std::string counted(int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string whole_path(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  if (error) return path;
  // "runs/x/" ends in an empty name.
  return whole.has_filename() ? whole.string() : whole.parent_path().string();
}

}  // namespace

// Read by one look at a time, on a thread of the pool or before the loop runs.
struct RunSource::File {
  std::string run_dir;
  UniqueFd fd;
  EventReader reader;
  int64_t samples_size = 0;  // of samples.jsonl when it was read last
};

// Where the newest files are to be expected.
struct RunSource::Place {
  int attempt = 0;
  int64_t started_us = 0;

  void follow(const Event& event) {
    if (std::holds_alternative<event::JobStarted>(event.body)) started_us = unix_us(event.time);
    const auto* started = std::get_if<event::AttemptStarted>(&event.body);
    if (started != nullptr) attempt = started->attempt;
  }
};

struct RunSource::Found {
  static constexpr int kMaxBlocks = 64;

  std::vector<Event> events;
  int error = 0;
  bool live = false;
  bool more = false;       // the file was not read to its end
  int64_t last_write = 0;  // unix time, of a run that lives no more
  int64_t damaged = 0;     // so far
  int64_t unknown = 0;
  std::optional<HistoryRecord> samples;  // that are new

  static Found look(File& file, Place place) {
    Found found;
    // Asked first: what the muster wrote before it went is then in the file.
    found.live = run_lives(file.run_dir);
    found.read(file);
    found.read_samples(file);
    found.damaged = file.reader.damaged();
    found.unknown = file.reader.unknown();
    for (const Event& event : found.events)
      place.follow(event);
    if (!found.live && !found.more) {
      found.last_write = last_write_us(file.run_dir, place.attempt, place.started_us);
    }
    return found;
  }

  void read_samples(File& file) {
    const std::string path = file.run_dir + "/samples.jsonl";
    struct stat info;
    if (::stat(path.c_str(), &info) != 0 || info.st_size == file.samples_size) return;
    file.samples_size = info.st_size;
    samples = read_last_samples(path);
  }

  void read(File& file) {
    std::string block(kReadBlock, '\0');
    for (int i = 0; i < kMaxBlocks; ++i) {
      const ssize_t count = ::read(file.fd.get(), block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) error = errno;
      if (count <= 0) return;
      std::vector<Event> some =
          file.reader.take(std::string_view(block).substr(0, static_cast<size_t>(count)));
      std::move(some.begin(), some.end(), std::back_inserter(events));
    }
    more = true;
  }
};

RunSource::RunSource(Loop& loop, std::string run_dir)
    : loop_(loop),
      run_dir_(std::move(run_dir)),
      file_(std::make_shared<File>()),
      self_(std::make_shared<RunSource*>(this)) {}

RunSource::~RunSource() = default;

Result<std::unique_ptr<RunSource>> RunSource::open(Loop& loop, const std::string& run_dir) {
  auto source = std::unique_ptr<RunSource>(new RunSource(loop, whole_path(run_dir)));
  if (Result<void> read = source->read_all(); !read) return read.error();
  if (source->live_) {
    source->timer_ = Timer::start(loop, kLookEvery, [raw = source.get()] { raw->look(); });
  }
  return source;
}

Result<void> RunSource::read_all() {
  file_->run_dir = run_dir_;
  file_->fd.reset(::open((run_dir_ + "/events.jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_->fd) return cannot_open(run_dir_, errno);
  for (bool more = true; more;) {
    const AttemptState* attempt = state_.current();
    const Place place{attempt == nullptr ? 0 : attempt->attempt, unix_us(state_.started)};
    const Found found = Found::look(*file_, place);
    if (found.error != 0) return errno_error(found.error, "read " + run_dir_ + "/events.jsonl");
    more = found.more;
    const bool nothing = next_seq_ == 0 && found.events.empty() && !more;
    if (nothing && (!found.live || found.unknown > 0)) {
      return no_event(run_dir_, found.damaged, found.unknown);
    }
    take(found);
  }
  return {};
}

std::vector<Event> RunSource::recent_events() const {
  return {recent_.begin(), recent_.end()};
}

void RunSource::set_observer(std::function<void(const Event&)> observer) {
  observer_ = std::move(observer);
}

bool RunSource::hosting() const {
  return state_.job.max_nodes == 1 || !state_.nodes.empty();
}

// The last that were kept: for a killed job they say how far it was.
std::vector<RankSample> RunSource::samples() {
  const AttemptState* attempt = state_.current();
  if (attempt == nullptr || attempt->attempt != last_samples_.attempt) return {};
  return last_samples_.samples;
}

bool RunSource::forward(int, int, std::unique_ptr<HttpExchange>&) {
  return false;
}

std::string RunSource::cannot_change(const char* what) const {
  if (!live_) return "the run is over";
  const std::optional<RunAddress> address = read_address_file(run_dir_);
  return std::string("this page only reads the run's files; ") + what + " the job " +
         (address
              ? "from its own page, " + address->url.substr(0, address->url.find('?'))
              : "by a signal to pid " + std::to_string(state_.job.pid) + " on " + state_.job.host);
}

std::string RunSource::stop(const std::string&, bool) {
  return cannot_change("stop");
}

std::string RunSource::restart(const std::string&) {
  return cannot_change("restart");
}

std::string RunSource::dump(const std::string&, OnDumped) {
  return cannot_change("look into");
}

void RunSource::look() {
  const AttemptState* attempt = state_.current();
  const Place place{attempt == nullptr ? 0 : attempt->attempt, unix_us(state_.started)};
  auto found = std::make_shared<Found>();
  run_in_pool(
      loop_, [file = file_, place, found] { *found = Found::look(*file, place); },
      [weak = std::weak_ptr<RunSource*>(self_), found] {
        if (auto self = weak.lock()) (*self)->on_look(*found);
      });
}

void RunSource::on_look(const Found& found) {
  take(found);
  if (found.more) return look();
  if (live_) {
    timer_ = Timer::start(loop_, kLookEvery, [this] { look(); });
    return;
  }
  timer_.reset();
  if (on_over_) on_over_();
}

void RunSource::take(const Found& found) {
  for (const Event& event : found.events)
    add(event);
  add_file_troubles(found);
  if (found.samples) last_samples_ = *found.samples;
  if (found.live || found.more) return;
  live_ = false;
  if (!state_.end) end_without_muster(found);
}

// A file with gaps, or with what we add ourselves, still gives numbers that only grow.
void RunSource::add(Event event) {
  event.seq = std::max(event.seq, next_seq_);
  next_seq_ = event.seq + 1;
  apply(state_, event);
  last_time_ = event.time;
  recent_.push_back(event);
  if (recent_.size() > kRecentEvents) recent_.pop_front();
  if (observer_) observer_(event);
}

void RunSource::add_trouble(std::string subject, std::string message) {
  Event event;
  event.seq = next_seq_;
  event.mono_us = state_.last_us;
  event.time = last_time_;
  event.body = event::Trouble{std::move(subject), std::move(message)};
  add(std::move(event));
}

void RunSource::add_file_troubles(const Found& found) {
  if (found.error != 0) {
    add_trouble("logs", errno_error(found.error, "read " + run_dir_ + "/events.jsonl").message);
  }
  const int64_t damaged = found.damaged - std::exchange(told_damaged_, found.damaged);
  if (damaged > 0) {
    add_trouble("logs", "events.jsonl: " + counted(damaged, "line is", "lines are") +
                            " damaged and left out");
  }
  const int64_t unknown = found.unknown - std::exchange(told_unknown_, found.unknown);
  if (unknown > 0) {
    add_trouble("logs", "events.jsonl: " + counted(unknown, "event is", "events are") +
                            " of a newer muster than this one (" MUSTER_VERSION ") and left out");
  }
}

// There is no event for this: whoever could have recorded it is gone.
void RunSource::end_without_muster(const Found& found) {
  const int64_t seen_us = found.last_write - unix_us(state_.started);
  if (found.last_write > 0) state_.last_us = std::max(state_.last_us, seen_us);
  state_.phase = Phase::kEnded;
  const auto seen = state_.started + std::chrono::microseconds(state_.last_us);
  last_time_ = seen;
  add_trouble("muster",
              "was killed, or its machine stopped: the job has no end; last sign of life " +
                  utc_text(seen, 3) + ", " + duration_text(state_.last_us) + " after the start");
}

}  // namespace muster
