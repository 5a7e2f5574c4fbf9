// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "loop/unique_fd.h"
#include "supervisor/cli/values.h"
#include "supervisor/rendezvous/auth.h"

namespace muster {
namespace {

constexpr int kUsage = 2;
constexpr const char* kVariable = "MUSTER_TOKEN";

// rendezvous/auth.h has the limits; the message never has the token.
Result<void> check_length(const std::string& token, const std::string& where) {
  if (token.size() > kMaxToken) {
    return Error{0, where + ": longer than " + std::to_string(kMaxToken) + " bytes"};
  }
  if (token.size() < kMinToken) {
    return Error{0, where + ": " + std::to_string(token.size()) + " bytes; fewer than " +
                        std::to_string(kMinToken) +
                        " could be guessed (openssl rand -hex 32 makes 64)"};
  }
  return {};
}

// A FIFO, as of `--token-file <(...)`, may come in pieces.
Result<std::string> read_up_to(int fd, size_t limit, const std::string& path) {
  std::string text;
  std::array<char, 1024> chunk{};
  while (text.size() <= limit) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, path);
    if (got == 0) break;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  return text;
}

Result<Token> read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return errno_error(errno, path);
  Result<std::string> read = read_up_to(fd.get(), kMaxToken, path);
  if (!read) return read.error();
  Token token{std::string(trim(*read)), ""};
  if (token.text.empty()) return Error{0, path + ": the file is empty"};
  if (Result<void> fine = check_length(token.text, path); !fine) return fine.error();
  struct stat info {};
  const bool known = ::fstat(fd.get(), &info) == 0;
  if (known && S_ISREG(info.st_mode) && (info.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    token.warning =
        "--token-file " + path + ": others can read the file; chmod 600 keeps it secret";
  }
  return token;
}

}  // namespace

Result<Token> read_token(const Options& options, const Environment& environment) {
  if (!options.token_file.empty()) {
    Result<Token> token = read_file(options.token_file);
    if (!token) return Error{kUsage, "muster: --token-file " + token.error().message + "\n"};
    return token;
  }
  Token token{std::string(trim(lookup(environment, kVariable).value_or(""))), ""};
  if (token.text.empty()) return token;
  Result<void> fine = check_length(token.text, kVariable);
  if (!fine) return Error{kUsage, "muster: " + fine.error().message + "\n"};
  return token;
}

void remove_token(Environment& environment) {
  remove_variable(environment, kVariable);
}

void hide_own_token() {
  const std::string_view name = kVariable;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    std::string_view text = *line;
    if (!text.starts_with(name) || text.substr(name.size(), 1) != "=") continue;
    std::fill(*line + name.size() + 1, *line + text.size(), '-');
  }
}

}  // namespace muster
