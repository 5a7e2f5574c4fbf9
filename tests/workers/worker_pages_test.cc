// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/worker_pages.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "nccl/report/worker_page.h"

using namespace muster;

TEST_CASE("a page is found under its path, has its whole size, and no memory") {
  WorkerPages pages(2);
  const Result<std::string> path = pages.make(1);
  REQUIRE(path);
  const UniqueFd opened(::open(path->c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(opened);
  struct stat info {};
  REQUIRE(::fstat(opened.get(), &info) == 0);
  CHECK(info.st_size == static_cast<off_t>(sizeof(worker_page::Page)));
  CHECK(info.st_blocks == 0);
  CHECK(pages.find(1));
  CHECK_FALSE(pages.find(0));
}

TEST_CASE("nobody can change a page's size") {
  WorkerPages pages(1);
  const UniqueFd opened(::open(pages.make(0)->c_str(), O_RDWR | O_CLOEXEC));
  CHECK(::ftruncate(opened.get(), 0) != 0);
  CHECK(::ftruncate(opened.get(), 1 << 20) != 0);
  CHECK(::fcntl(opened.get(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("a page that somebody reads outlives the attempt") {
  auto pages = std::make_unique<WorkerPages>(1);
  REQUIRE(pages->make(0));
  const std::shared_ptr<const UniqueFd> page = pages->find(0);
  pages.reset();
  char byte = 1;
  CHECK(::pread(page->get(), &byte, 1, 0) == 1);
  CHECK(byte == 0);
}

TEST_CASE("no page is made where workers would have no descriptors left") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const auto workers = static_cast<int>(limit.rlim_cur / 9);
  WorkerPages many(workers);
  const Result<std::string> path = many.make(0);
  REQUIRE_FALSE(path);
  CHECK(path.error().message.find("open files") != std::string::npos);
  CHECK_FALSE(many.find(0));
}

TEST_CASE("a file for progress can be written again and again, under its path") {
  WorkerPages pages(1);
  const Result<std::string> path = pages.make_progress(0);
  REQUIRE(path);
  REQUIRE(pages.find_progress(0));
  for (std::string_view text : {"step 812", "step 9"}) {
    const UniqueFd opened(::open(path->c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    REQUIRE(opened);
    REQUIRE(::write(opened.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    char bytes[32];
    const ssize_t got = ::pread(pages.find_progress(0)->get(), bytes, sizeof bytes, 0);
    CHECK(std::string_view(bytes, static_cast<size_t>(std::max<ssize_t>(0, got))) == text);
  }
  CHECK_FALSE(pages.find_progress(1));
  CHECK_FALSE(pages.find(0));
}
