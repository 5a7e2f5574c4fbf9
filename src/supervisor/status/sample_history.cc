// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/sample_history.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "loop/pool.h"
#include "loop/unique_fd.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/status/json_out.h"

namespace muster {

namespace {

// From this many ranks on the intervals grow with their number.
constexpr size_t kRanksAtFullRate = 256;
constexpr int64_t kIntervalsOfAge = 1'000;
constexpr int64_t kMaxLastLine = int64_t{4} << 20;

template <typename T>
void known(JsonOut& out, T number) {
  number >= 0 ? out.value(number) : out.null();
}

void write_row(JsonOut& out, const RankSample& sample) {
  out.begin_array();
  out.value(sample.rank);
  known(out, sample.cpu);
  known(out, sample.rss_bytes);
  sample.last_output_us > 0 ? out.value(sample.last_output_us) : out.null();
  // Most jobs have no more than this.
  const bool page = sample.heartbeat_us > 0 || !sample.values.empty();
  const bool progress = page || sample.step >= 0 || sample.steps_per_s >= 0 || sample.loss;
  if (progress || sample.gpu >= 0 || sample.gpu_memory_bytes >= 0) {
    known(out, sample.gpu);
    known(out, sample.gpu_memory_bytes);
  }
  if (progress) {
    known(out, sample.step);
    known(out, sample.steps);
    known(out, sample.steps_per_s);
    out.value(sample.loss);
  }
  if (page) {
    sample.heartbeat_us > 0 ? out.value(sample.heartbeat_us) : out.null();
    out.begin_array();
    for (const auto& [name, value] : sample.values) {
      out.begin_array();
      out.value(name);
      out.value(value);
      out.end_array();
    }
    out.end_array();
  }
  out.end_array();
}

using Json = nlohmann::json;

template <typename T>
T number_at(const Json& row, size_t at, T unknown) {
  return at < row.size() && row[at].is_number() ? row[at].get<T>() : unknown;
}

RankSample sample_of(const Json& row, int64_t time_us) {
  RankSample sample;
  sample.time_us = time_us;
  sample.rank = number_at<int>(row, 0, -1);
  sample.cpu = number_at<double>(row, 1, -1);
  sample.rss_bytes = number_at<int64_t>(row, 2, -1);
  sample.last_output_us = number_at<int64_t>(row, 3, 0);
  sample.gpu = number_at<double>(row, 4, -1);
  sample.gpu_memory_bytes = number_at<int64_t>(row, 5, -1);
  sample.step = number_at<int64_t>(row, 6, -1);
  sample.steps = number_at<int64_t>(row, 7, -1);
  sample.steps_per_s = number_at<double>(row, 8, -1);
  if (row.size() > 9 && row[9].is_number()) sample.loss = row[9].get<double>();
  sample.heartbeat_us = number_at<int64_t>(row, 10, 0);
  if (row.size() <= 11 || !row[11].is_array()) return sample;
  for (const Json& one : row[11]) {
    const bool pair = one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_number();
    if (pair && sample.values.size() < worker_page::kMaxValues) {
      sample.values.emplace_back(clean_line(one[0].get<std::string>()), one[1].get<double>());
    }
  }
  return sample;
}

}  // namespace

int64_t history_interval_us(int64_t age_us, size_t ranks) {
  const int64_t interval = std::max(kLeastHistoryIntervalUs, age_us / kIntervalsOfAge);
  return interval * static_cast<int64_t>(std::max<size_t>(1, ranks / kRanksAtFullRate));
}

std::string history_line(int attempt, int64_t time_us, const std::vector<RankSample>& samples) {
  std::string line;
  JsonOut out(line);
  out.begin_object();
  out.field("time_us", time_us);
  out.field("attempt", attempt);
  out.key("ranks");
  out.begin_array();
  for (const RankSample& sample : samples)
    write_row(out, sample);
  out.end_array();
  out.end_object();
  return line + '\n';
}

Result<HistoryRecord> parse_history_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  const Error bad{0, "samples: not a record"};
  if (!json.is_object()) return bad;
  const auto time = json.find("time_us");
  const auto attempt = json.find("attempt");
  const auto ranks = json.find("ranks");
  if (time == json.end() || !time->is_number_integer() || ranks == json.end() ||
      !ranks->is_array()) {
    return bad;
  }
  HistoryRecord record;
  record.time_us = time->get<int64_t>();
  if (attempt != json.end() && attempt->is_number_integer()) record.attempt = attempt->get<int>();
  for (const Json& row : *ranks) {
    if (!row.is_array()) return bad;
    RankSample sample = sample_of(row, record.time_us);
    if (sample.rank >= 0) record.samples.push_back(sample);
  }
  return record;
}

struct HistoryWriter::File {
  std::string path;
  // Of the thread that writes; one line is on its way at most.
  UniqueFd fd;
  int64_t size = 0;
  int error = 0;

  void append(const std::string& line) {
    if (!fd) {
      fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      struct stat info {};
      if (fd && ::fstat(fd.get(), &info) == 0) size = info.st_size;
    }
    if (!fd) {
      error = errno;
      return;
    }
    for (size_t at = 0; at < line.size();) {
      const ssize_t written = ::write(fd.get(), line.data() + at, line.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        error = errno;
        break;
      }
      at += static_cast<size_t>(written);
    }
    size += static_cast<int64_t>(line.size());
    fd.reset();  // seconds go by until the next line
  }
};

HistoryWriter::HistoryWriter(Loop& loop, std::string path,
                             std::function<void(const std::string&)> on_trouble)
    : loop_(loop),
      file_(std::make_shared<File>()),
      on_trouble_(std::move(on_trouble)),
      self_(std::make_shared<HistoryWriter*>(this)) {
  file_->path = std::move(path);
}

HistoryWriter::~HistoryWriter() {
  *self_ = nullptr;
}

void HistoryWriter::append(std::string line) {
  if (busy_ || over_) return;
  busy_ = true;
  run_in_pool(
      loop_, [file = file_, line = std::move(line)] { file->append(line); },
      [file = file_, self = self_] {
        if (*self == nullptr) return;
        HistoryWriter& writer = **self;
        writer.busy_ = false;
        writer.over_ = file->error != 0 || file->size > kMaxHistoryBytes;
        if (file->error == 0) return;
        writer.on_trouble_("write " + file->path + ": " + ::strerror(file->error) +
                           "; measurements are not kept");
      });
}

std::vector<RankSample> read_history(const std::string& path, size_t max_samples,
                                     const std::function<bool(int rank)>& wanted) {
  std::ifstream in(path, std::ios::binary);
  // The first pass only counts, so that no more than is wanted is ever held.
  std::string line;
  size_t lines = 0, width = 1;
  for (; std::getline(in, line); ++lines) {
    if (lines > 0) continue;
    const auto first = parse_history_line(line);
    if (!first) continue;
    const auto count = std::count_if(first->samples.begin(), first->samples.end(),
                                     [&](const RankSample& one) { return wanted(one.rank); });
    width = std::max<size_t>(1, static_cast<size_t>(count));
  }
  const size_t every = lines * width / std::max(max_samples, width) + 1;
  std::vector<RankSample> samples;
  in.clear();
  in.seekg(0);
  for (size_t i = 0; std::getline(in, line); ++i) {
    // The last one is always there.
    if (i % every != 0 && i + 1 != lines) continue;
    const auto record = parse_history_line(line);
    if (!record) continue;
    for (const RankSample& sample : record->samples)
      if (wanted(sample.rank)) samples.push_back(sample);
  }
  return samples;
}

HistoryRecord read_last_samples(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<int64_t>(in.tellg());
  in.seekg(std::max<int64_t>(0, size - kMaxLastLine));
  std::string line;
  HistoryRecord last;
  std::string newest, before;
  while (std::getline(in, line)) {
    before = std::move(newest);
    newest = std::move(line);
  }
  // The last line of a run that was killed may be cut.
  for (const std::string& one : {newest, before}) {
    if (auto record = parse_history_line(one)) return std::move(*record);
  }
  return {};
}

}  // namespace muster
