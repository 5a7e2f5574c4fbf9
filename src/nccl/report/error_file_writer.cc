// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/error_file_writer.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nccl/report/fixed_text.h"

namespace muster::comm::detail {
namespace {

// Bytes of the character of UTF-8 that `text` begins with; 0 if it is none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; i++) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

// JSON on its way to a descriptor, through a small buffer.
class JsonOut {
 public:
  explicit JsonOut(int fd) : fd_(fd) {}

  void raw(std::string_view text) {
    if (buffer_.room() < text.size()) flush();
    buffer_.add(text);
  }
  // The inside of a string.
  void escaped(std::string_view text) {
    while (!text.empty()) {
      const size_t length = character_length(text);
      if (length == 1) {
        ascii(text[0]);
      } else {
        raw(length == 0 ? std::string_view("\\ufffd") : text.substr(0, length));
      }
      text.remove_prefix(length == 0 ? 1 : length);
    }
  }
  bool finish() {
    flush();
    return good_;
  }

 private:
  void ascii(char c) {
    switch (c) {
      case '"':
        return raw("\\\"");
      case '\\':
        return raw("\\\\");
      case '\n':
        return raw("\\n");
      case '\t':
        return raw("\\t");
      default:
        break;
    }
    if (static_cast<unsigned char>(c) >= 0x20) return raw({&c, 1});
    raw(static_cast<unsigned char>(c) < 0x10 ? "\\u000" : "\\u001");
    raw({&"0123456789abcdef"[static_cast<unsigned char>(c) % 16], 1});
  }
  void flush() {
    good_ = good_ && write_all(fd_, buffer_.text());
    buffer_ = FixedText(memory_);
  }

  int fd_;
  bool good_ = true;
  std::array<char, 512> memory_{};
  FixedText buffer_{memory_};
};

}  // namespace

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void ErrorFileWriter::prepare(const char* path) {
  path_[0] = temporary_[0] = 0;
  if (path == nullptr || *path == 0) return;
  const int length =
      std::snprintf(temporary_.data(), kMaxPath, "%s.%d.part", path, static_cast<int>(getpid()));
  if (length < 0 || static_cast<size_t>(length) >= kMaxPath) return;
  std::snprintf(path_.data(), kMaxPath, "%s", path);
}

bool ErrorFileWriter::write(std::string_view message, std::string_view callstack,
                            std::string_view comm_error) const {
  if (path_[0] == 0) return false;
  const int fd =
      open(temporary_.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return false;
  JsonOut out(fd);
  out.raw("{\"message\": {\"message\": \"");
  out.escaped(message);
  out.raw("\", \"extraInfo\": {\"py_callstack\": \"");
  out.escaped(callstack);
  out.raw("\", \"timestamp\": \"");
  char digits[32];
  FixedText seconds(digits);
  seconds.add_number(static_cast<uint64_t>(time(nullptr)));
  out.raw(seconds.text());
  if (!comm_error.empty()) {
    out.raw("\", \"comm_error\": \"");
    out.escaped(comm_error);
  }
  out.raw("\"}}}");
  const bool written = out.finish();
  close(fd);
  if (written && rename(temporary_.data(), path_.data()) == 0) return true;
  clean_up();
  return false;
}

void ErrorFileWriter::clean_up() const {
  if (temporary_[0] != 0) unlink(temporary_.data());
}

}  // namespace muster::comm::detail
