// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"

namespace muster {

// A folder of a test's own, gone with it.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster_test_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Runs a real program to its end and returns what the job would know about it.
inline Evidence run_program(std::vector<std::string> argv) {
  TestFolder folder;
  int pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    int out = open(folder.file("out").c_str(), O_WRONLY | O_CREAT, 0600);
    int err = open(folder.file("err").c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(out, 1);
    dup2(err, 2);
    std::vector<char*> words;
    for (std::string& word : argv)
      words.push_back(word.data());
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  Evidence evidence;
  evidence.pid = pid;
  REQUIRE(waitpid(pid, &evidence.wait_status, 0) == pid);
  evidence.stdout_tail = read_file(folder.file("out"));
  evidence.stderr_tail = read_file(folder.file("err"));
  evidence.wrote_output = !evidence.stdout_tail.empty() || !evidence.stderr_tail.empty();
  return evidence;
}

inline Evidence run_python(const std::string& script, std::vector<std::string> options = {}) {
  std::vector<std::string> argv = {"python3", "-u"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(script);
  return run_program(argv);
}

}  // namespace muster
