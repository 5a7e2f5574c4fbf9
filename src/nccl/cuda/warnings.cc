// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/warnings.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <mutex>

namespace muster::comm::detail {
namespace {

constexpr std::string_view kMark = "NCCL WARN ";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string host_name() {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof host - 1) != 0) return {};
  // NCCL takes what stands before the first dot.
  return std::string(host).substr(0, std::string_view(host).find('.'));
}

// How far the log of this process was read. Never destroyed: threads that outlive main() still ask.
struct Read {
  std::mutex mutex;
  std::string path;
  std::streamoff bytes = 0;

  static Read& get() {
    static Read& read = *new Read;
    return read;
  }
};

// What has come since the last time.
std::string news_of(const std::string& path) {
  Read& read = Read::get();
  const std::lock_guard lock(read.mutex);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  // Another file after a fork; begun anew where it is shorter.
  const std::streamoff before = read.path == path && read.bytes <= size ? read.bytes : 0;
  const std::streamoff from = std::max(before, size - std::streamoff{kWarningBytes});
  read.path = path;
  std::string text(static_cast<size_t>(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  text.resize(text.rfind('\n') + 1);  // a line that is being written comes next time
  read.bytes = from + static_cast<std::streamoff>(text.size());
  return text;
}

}  // namespace

void prepare_nccl_environment() {
  // It would make every communicator a blocking one, whatever was asked for, and take all deadlines
  // away with it.
  unsetenv("NCCL_COMM_BLOCKING");
  const std::string error_file = environment("TORCHELASTIC_ERROR_FILE");
  const size_t slash = error_file.rfind('/');
  if (slash == std::string::npos || !environment("NCCL_DEBUG").empty() ||
      !environment("NCCL_DEBUG_FILE").empty()) {
    return;
  }
  setenv("NCCL_DEBUG", "WARN", 1);
  setenv("NCCL_DEBUG_FILE", (error_file.substr(0, slash) + "/nccl.%p.log").c_str(), 1);
}

std::string expand_debug_file(std::string_view pattern, std::string_view host, int pid) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    ++i;
    if (pattern[i] == '%') {
      path += '%';
    } else if (pattern[i] == 'h') {
      path += host;
    } else if (pattern[i] == 'p') {
      path += std::to_string(pid);
    } else {
      path += '%';
      path += pattern[i];
    }
  }
  return path;
}

std::vector<std::string> warnings_in(std::string_view text, int most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t mark = line.find(kMark);
    if (mark != std::string_view::npos) lines.emplace_back(line.substr(mark + kMark.size()));
  }
  if (lines.size() > static_cast<size_t>(most)) lines.erase(lines.begin(), lines.end() - most);
  return lines;
}

Warnings new_nccl_warnings() {
  const std::string pattern = environment("NCCL_DEBUG_FILE");
  if (pattern.empty()) return {};
  Warnings warnings;
  const std::string path = expand_debug_file(pattern, host_name(), getpid());
  if (access(path.c_str(), R_OK) != 0) return {};
  warnings.file = path;
  warnings.lines = warnings_in(news_of(path), kQuotedWarnings);
  return warnings;
}

}  // namespace muster::comm::detail
