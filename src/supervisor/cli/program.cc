// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "supervisor/cli/values.h"

namespace muster {
namespace {

constexpr int kMissing = 127;
constexpr int kNotExecutable = 126;
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Run with the script and its arguments behind it: as torchrun's run_script_path.
constexpr const char* kRunPath =
    "import runpy, sys; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')";

enum class FileKind { kElf, kScript, kOther };

struct FileHead {
  FileKind kind = FileKind::kOther;
  std::string interpreter;    // of a #! script
  bool names_python = false;  // anywhere in its first line, as in /usr/bin/env python3
};

FileHead head_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 256> buffer{};
  file.read(buffer.data(), buffer.size());
  std::string_view head(buffer.data(), static_cast<size_t>(file.gcount()));
  if (head.starts_with("\x7f"
                       "ELF"))
    return {FileKind::kElf, "", false};
  if (!head.starts_with("#!")) return {};
  std::string_view line = trim(head.substr(2, head.find('\n') - 2));
  return {FileKind::kScript, std::string(line.substr(0, line.find_first_of(" \t"))),
          line.find("python") != std::string_view::npos};
}

bool is_regular(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_executable(const std::string& path) {
  return is_regular(path) && access(path.c_str(), X_OK) == 0;
}

// Where a search ended: a path that can be executed, or why there is none.
struct Found {
  std::string path;
  std::string denied;  // exists, but cannot be executed
};

Found search(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) {
    struct stat info {};
    if (is_executable(name)) return {name, ""};
    bool there = stat(name.c_str(), &info) == 0 || errno == EACCES;
    return {"", there ? name : ""};
  }
  Found found;
  for (const std::string& directory : split(search_path, ':')) {
    std::string path = (directory.empty() ? "." : directory) + "/" + name;
    if (is_executable(path)) return {path, ""};
    if (found.denied.empty() && is_regular(path)) found.denied = path;
  }
  return found;
}

// "permission denied", "is a directory".
std::string why_denied(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (S_ISDIR(info.st_mode)) return "is a directory";
  if (!S_ISREG(info.st_mode)) return "is no regular file";
  return "is not executable (chmod +x would make it so)";
}

struct Search {
  std::string path;
  std::string host;
};

// `what` says where the name comes from, for messages: "PYTHON_EXEC=".
Result<std::string> find_executable(const std::string& name, const std::string& what,
                                    const Search& where) {
  Found found = search(name, where.path);
  if (!found.path.empty()) return found.path;
  std::string subject = "muster: " + what + name;
  if (!found.denied.empty()) {
    std::string path = found.denied == name ? "" : found.denied + " ";
    return Error{kNotExecutable,
                 subject + ": " + path + why_denied(found.denied) + ", on " + where.host + "\n"};
  }
  std::string message = subject + ": program not found on " + where.host + "\n";
  if (name.find('/') == std::string::npos) {
    message += "muster: searched PATH " + where.path + "\n";
    if (is_regular(name)) {
      message += "muster: there is one in the current directory: ./" + name + "\n";
    }
  }
  return Error{kMissing, message};
}

// execve says "not found" when it means the interpreter of a script: say which.
Result<void> check_interpreter(const std::string& path, const Search& where) {
  FileHead head = head_of(path);
  if (head.kind != FileKind::kScript || !head.interpreter.starts_with('/')) return {};
  if (access(head.interpreter.c_str(), F_OK) == 0) return {};
  return Error{kMissing, "muster: " + path + ": its interpreter " + head.interpreter +
                             " is not there, on " + where.host + "\n"};
}

Result<Program> direct(const Options& options, const std::string& name, const Search& where) {
  Result<std::string> path = find_executable(name, "", where);
  if (!path) return path.error();
  if (Result<void> fine = check_interpreter(*path, where); !fine) return fine.error();
  Program program{*path, {options.script}, options.script};
  program.argv.insert(program.argv.end(), options.script_args.begin(), options.script_args.end());
  return program;
}

Result<Program> with_python(const Options& options, const Environment& environment,
                            const Search& where) {
  std::string chosen = lookup(environment, "PYTHON_EXEC").value_or("");
  bool is_default = chosen.empty();
  Result<std::string> path = is_default ? find_executable("python3", "", where)
                                        : find_executable(chosen, "PYTHON_EXEC=", where);
  if (!path) {
    Error error = path.error();
    if (is_default) {
      error.message +=
          "muster: " + options.script +
          " needs Python; set PYTHON_EXEC, or use --no-python if it is a program of its own\n";
    }
    return error;
  }
  // Python finds its own prefix by argv[0].
  Program program{*path, {is_default ? *path : chosen, "-u"}, options.script};
  if (options.run_path) {
    program.argv.insert(program.argv.end(), {"-c", kRunPath});
    program.name = "run_script_path";
  } else if (options.module) {
    program.argv.emplace_back("-m");
  }
  program.argv.push_back(options.script);
  program.argv.insert(program.argv.end(), options.script_args.begin(), options.script_args.end());
  return program;
}

// Which name to execute directly though no flag says so; nothing if the script is Python's. An
// error if it is a program that lacks its permission.
Result<std::optional<std::string>> program_without_flag(const Options& options,
                                                        const Search& where) {
  using Answer = std::optional<std::string>;
  const std::string& script = options.script;
  if (options.module || options.run_path || script.ends_with(".py")) return Answer();
  bool bare = script.find('/') == std::string::npos;
  if (is_regular(script)) {
    FileHead head = head_of(script);
    if (head.kind == FileKind::kOther) return Answer();
    if (is_executable(script)) return Answer(bare ? "./" + script : script);
    if (head.names_python) return Answer();
    return Error{kNotExecutable,
                 "muster: " + script + ": " + why_denied(script) + ", on " + where.host + "\n"};
  }
  if (!bare) return Answer();
  Found found = search(script, where.path);
  bool runs = !found.path.empty() && head_of(found.path).kind != FileKind::kOther;
  return runs ? Answer(script) : Answer();
}

bool continues_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

Result<Program> resolve_program(const Options& options, const Environment& environment,
                                const std::string& host) {
  Search where{lookup(environment, "PATH").value_or(kDefaultPath), host};
  if (options.run_path) return with_python(options, environment, where);
  if (options.no_python) return direct(options, options.script, where);
  Result<std::optional<std::string>> name = program_without_flag(options, where);
  if (!name) return name.error();
  if (*name) return direct(options, **name, where);
  return with_python(options, environment, where);
}

std::string substitute_local_rank(std::string_view text, int local_rank) {
  constexpr std::string_view kBraced = "${local_rank}";
  constexpr std::string_view kPlain = "$local_rank";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    std::string_view rest = text.substr(i);
    if (rest.starts_with("$$")) {
      out += "$$";
      i += 2;
    } else if (rest.starts_with(kBraced)) {
      out += std::to_string(local_rank);
      i += kBraced.size();
    } else if (rest.starts_with(kPlain) &&
               (rest.size() == kPlain.size() || !continues_name(rest[kPlain.size()]))) {
      out += std::to_string(local_rank);
      i += kPlain.size();
    } else {
      out += text[i++];
    }
  }
  return out;
}

}  // namespace muster
