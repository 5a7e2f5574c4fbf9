// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>

#include "faults.h"

namespace doubles {
namespace {

enum Level { kNone, kVersion, kWarn, kInfo };

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

Level level_of(const std::string& word) {
  if (word == "VERSION") return kVersion;
  if (word == "WARN") return kWarn;
  if (word == "INFO" || word == "TRACE") return kInfo;
  return kNone;
}

std::string expand(const std::string& pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    char what = pattern[++i];
    if (what == 'h') path += host_name();
    if (what == 'p') path += std::to_string(getpid());
    if (what == '%') path += '%';
  }
  return path;
}

// Never freed: threads that outlive main() still write.
struct Log {
  std::mutex mutex;
  Level level = kNone;
  FILE* out = stdout;
  std::string last;

  Log() {
    const char* debug = std::getenv("NCCL_DEBUG");
    level = level_of(debug ? debug : "");
    const char* file = std::getenv("NCCL_DEBUG_FILE");
    if (level > kVersion && file && *file) {
      if (FILE* opened = std::fopen(expand(file).c_str(), "w")) out = opened;
    }
  }
  static Log& get() {
    static Log* log = new Log;
    return *log;
  }
};

std::string format_text(const char* format, va_list arguments) {
  char text[1024];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

std::string prefix() {
  return host_name() + ":" + std::to_string(getpid()) + ":" + std::to_string(syscall(SYS_gettid));
}

std::string now_text() {
  time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace

void warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_text(format, arguments);
  va_end(arguments);
  int device = -1;
  cudaGetDevice(&device);
  Log& log = Log::get();
  std::lock_guard lock(log.mutex);
  log.last = text;
  if (log.level < kWarn) return;
  std::fprintf(log.out, "\n[%s] %s [%d] double.cc:1 NCCL WARN %s\n", now_text().c_str(),
               prefix().c_str(), device, text.c_str());
  std::fflush(log.out);
}

void info(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = format_text(format, arguments);
  va_end(arguments);
  Log& log = Log::get();
  std::lock_guard lock(log.mutex);
  if (log.level < kInfo) return;
  std::fprintf(log.out, "%s [0] NCCL INFO %s\n", prefix().c_str(), text.c_str());
  std::fflush(log.out);
}

ncclResult_t cuda_failure(cudaError_t error) {
  warn("Cuda failure '%s'", cudaGetErrorString(error));
  return ncclUnhandledCudaError;
}

// The text stays where it is until this thread asks again.
const char* last_error_text() {
  thread_local std::string text;
  std::lock_guard lock(Log::get().mutex);
  text = Log::get().last;
  return text.c_str();
}

int library_version() {
  return static_cast<int>(env_number("DOUBLE_NCCL_VERSION", DOUBLE_LIBRARY_VERSION));
}

void say_version() {
  Log& log = Log::get();
  std::lock_guard lock(log.mutex);
  if (log.level == kNone) return;
  int version = library_version();
  std::fprintf(log.out, "NCCL version %d.%d.%d+cuda%d.%d\n", version / 10000, version / 100 % 100,
               version % 100, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  std::fflush(log.out);
}

}  // namespace doubles
