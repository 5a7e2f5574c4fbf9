// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster {

// A directory that is gone with the test.
class TempTree {
 public:
  explicit TempTree(const std::string& base = std::filesystem::temp_directory_path()) {
    root_ = base + "/muster-XXXXXX";
    REQUIRE(mkdtemp(root_.data()) != nullptr);
  }
  ~TempTree() { std::filesystem::remove_all(root_); }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  const std::string& root() const { return root_; }
  std::string path(const std::string& name) const { return root_ + "/" + name; }

  // Writes a file, making its folders.
  std::string file(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << content;
    return path(name);
  }

  // In memory where there is such a place: for trees of many files, none of them a program.
  static std::string fast_base() {
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                         : std::filesystem::temp_directory_path().string();
  }

  std::string program(const std::string& name, const std::string& content) const {
    std::string where = file(name, content);
    std::filesystem::permissions(where, std::filesystem::perms::owner_all);
    return where;
  }

 private:
  std::string root_;
};

}  // namespace muster
