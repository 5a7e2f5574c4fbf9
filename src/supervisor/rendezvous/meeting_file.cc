// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/meeting_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "loop/socket_address.h"

namespace muster {

namespace {

using Json = nlohmann::json;

// What every note begins with.
constexpr std::string_view kMark = "{\"muster\":";

constexpr int kVersion = 1;

// Locks of the open file description rather than of the process: they survive that somebody here
// opens and closes the same file, and NFS servers keep them for all machines.
bool take_lock(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

// Whether the path still leads to the open file: it may have been removed before it was locked.
bool same_file(int fd, const std::string& path) {
  struct stat open_one {
  }, named{};
  return fstat(fd, &open_one) == 0 && stat(path.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

Result<std::string> read_all(int fd) {
  std::string text(kMaxMeetingNote, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = pread(fd, text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(errno, "read");
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  text.resize(size);
  return text;
}

// Whether it is a note of ours, whole or cut short: nothing else is overwritten, for it may be a
// file that somebody named by mistake.
bool may_replace(std::string_view content) {
  const size_t common = std::min(content.size(), kMark.size());
  return content.substr(0, common) == kMark.substr(0, common);
}

std::string text_of(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

std::string meeting_note_text(const MeetingNote& note) {
  nlohmann::ordered_json json;
  json["muster"] = kVersion;
  json["run_id"] = note.run_id;
  json["host"] = note.host;
  json["addresses"] = note.addresses;
  json["port"] = note.port;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<MeetingNote> read_meeting_note(std::string_view text) {
  // The line's end comes last, so a note that is being written is none yet.
  if (!text.ends_with('\n')) return std::nullopt;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("muster", Json()) != kVersion) return std::nullopt;
  MeetingNote note{text_of(json, "run_id"), text_of(json, "host"), {}, 0};
  const Json port = json.value("port", Json());
  if (!port.is_number_integer() || port < 1 || port > 65535) return std::nullopt;
  note.port = port.get<int>();
  const Json addresses = json.value("addresses", Json());
  if (!addresses.is_array() || addresses.size() > kMaxMeetingAddresses) return std::nullopt;
  for (const Json& address : addresses) {
    if (!address.is_string()) return std::nullopt;
    note.addresses.push_back(address.get<std::string>());
    if (!SocketAddress::parse(note.addresses.back(), 0)) return std::nullopt;
  }
  if (note.host.empty()) return std::nullopt;
  return note;
}

Result<MeetingFile> open_meeting_file(const std::string& path) {
  const std::string name = "file " + path;
  // O_NONBLOCK is for what turns out not to be a file.
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  if (!fd) return errno_error(errno, name);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return errno_error(errno, name);
  if (!S_ISREG(facts.st_mode)) return Error{EINVAL, name + ": not a plain file"};
  const bool ours = take_lock(fd.get());
  if (!ours && errno != EAGAIN && errno != EACCES)
    return Error{errno, name + ": cannot be locked: " + std::strerror(errno)};
  Result<std::string> content = read_all(fd.get());
  if (!content) return Error{content.error().code, name + ": " + content.error().message};
  if (!ours) return MeetingFile{UniqueFd(), std::move(*content)};
  if (!same_file(fd.get(), path)) return Error{ESTALE, name + ": it was replaced just now"};
  if (!may_replace(*content))
    return Error{EEXIST, name + ": it is not empty and not a meeting point of muster"};
  if (ftruncate(fd.get(), 0) != 0) return errno_error(errno, name);
  return MeetingFile{std::move(fd), ""};
}

bool meeting_file_may_heal(int code) {
  switch (code) {
    case EINTR:
    case EAGAIN:
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case EMFILE:
    case ENFILE:
    case ENOLCK:  // the server's lock manager is not up yet
      return true;
    default:
      return false;
  }
}

Result<void> write_meeting_note(const UniqueFd& lock, const std::string& path,
                                const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = pwrite(lock.get(), text.data() + written, text.size() - written,
                             static_cast<off_t>(written));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(errno, "write to file " + path);
    written += static_cast<size_t>(n);
  }
  // On a network file system others see it only now.
  if (fsync(lock.get()) != 0) return errno_error(errno, "write to file " + path);
  return {};
}

void leave_meeting_file(UniqueFd lock) {
  // Of no consequence if it fails: without the lock the note means nothing.
  if (lock && ftruncate(lock.get(), 0) != 0) return;
}

}  // namespace muster
