// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/own_page.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace muster::comm::detail {
namespace {

using worker_page::Page;

// What the launcher has of one worker: the memory, and a name for it.
class PageTest {
 public:
  PageTest() : fd_(memfd_create("page", MFD_CLOEXEC)) {
    REQUIRE(fd_ >= 0);
    resize(sizeof(Page));
    void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    REQUIRE(memory != MAP_FAILED);
    page_ = static_cast<Page*>(memory);
  }
  ~PageTest() {
    munmap(page_, sizeof(Page));
    close(fd_);
  }
  void resize(size_t size) const { REQUIRE(ftruncate(fd_, static_cast<off_t>(size)) == 0); }
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
  }
  const Page& page() const { return *page_; }
  Page& page() { return *page_; }

  // The worker's end: 0, or which of the things it was to do went wrong.
  int worker(std::vector<std::string> arguments, const std::string& path_of_page) const {
    arguments.insert(arguments.begin(), MUSTER_PAGE_WORKER);
    std::vector<char*> words;
    words.reserve(arguments.size() + 1);
    for (std::string& argument : arguments)
      words.push_back(argument.data());
    words.push_back(nullptr);
    std::string variable = std::string(worker_page::kVariable) + "=" + path_of_page;
    char rank[] = "RANK=2";
    char size[] = "WORLD_SIZE=4";
    char* const environment[] = {variable.data(), rank, size, nullptr};
    pid_t pid = 0;
    REQUIRE(posix_spawn(&pid, words[0], nullptr, nullptr, words.data(), environment) == 0);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int worker(std::vector<std::string> arguments) const {
    return worker(std::move(arguments), path());
  }

 private:
  int fd_;
  Page* page_ = nullptr;
};

}  // namespace

TEST_CASE_FIXTURE(PageTest, "a worker's first word makes the page good to read") {
  CHECK(worker({"shared"}) == 0);
  CHECK(page().magic == worker_page::kMagic);
  CHECK(page().layout == worker_page::kVersion);
  CHECK(page().owner > 0);
  CHECK(page().rank == 2);
  CHECK(page().world_size == 4);
  CHECK(page().progress.step == -1);
  CHECK(page().progress.total == -1);
  CHECK(std::isnan(page().progress.loss));
}

TEST_CASE_FIXTURE(PageTest, "the place in the world may be told later") {
  CHECK(worker({"shared", "world"}) == 0);
  CHECK(page().rank == 3);
  CHECK(page().world_size == 8);
}

TEST_CASE_FIXTURE(PageTest, "a forked child does not write what its parent reports") {
  CHECK(worker({"step=5", "fork", "shared"}) == 0);
  CHECK(page().progress.step == 5);
  CHECK(std::strcmp(page().communicators[0].name, "parent") == 0);
  CHECK(page().communicators[0].collectives == 1);
  CHECK(page().communicators[1].used == 0);
}

TEST_CASE_FIXTURE(PageTest, "a program that the worker starts has no say") {
  CHECK(worker({"step=5", "other", "shared"}) == 0);
  CHECK(page().progress.step == 5);
}

TEST_CASE_FIXTURE(PageTest, "a worker that becomes another program goes on as the writer") {
  CHECK(worker({"step=5", "open", "exec", "shared", "step=6"}) == 0);
  CHECK(page().progress.step == 6);
  CHECK(page().communicators[0].used == 0);
}

TEST_CASE_FIXTURE(PageTest, "who comes after a program that closed everything may write") {
  CHECK(worker({"step=5", "closed"}) == 0);
  const int32_t first = page().owner;
  CHECK(worker({"shared", "step=6"}) == 0);
  CHECK(page().progress.step == 6);
  CHECK(page().owner != first);
  CHECK(page().communicators[0].used == 0);
}

TEST_CASE_FIXTURE(PageTest, "what a dead owner was writing is good to write again") {
  for (const bool prepared : {true, false}) {  // or a second owner died before it had
    CHECK(worker({"closed"}) == 0);
    auto& block = page().communicators[0];
    page().progress.version++;
    block.version++;
    block.ring[0].version++;
    block.ring[worker_page::kRingSize - 1].version++;
    if (!prepared) page().magic = 0;
    CHECK(worker({"shared", "step=6", "closed"}) == 0);
    CHECK(page().magic == worker_page::kMagic);
    CHECK(page().progress.step == 6);
    CHECK(page().progress.version % 2 == 0);
    CHECK(block.used == 1);
    CHECK(block.version % 2 == 0);
    for (const worker_page::RingEntry& entry : block.ring)
      CHECK(entry.version % 2 == 0);
    CHECK(page().communicators[1].version == 0);
  }
}

TEST_CASE_FIXTURE(PageTest, "what somebody left open when he died is kept") {
  CHECK(worker({"step=5", "open"}) == 0);
  CHECK(worker({"private", "step=6"}) == 0);
  CHECK(page().progress.step == 5);
  CHECK(page().communicators[0].used == 1);
  CHECK(page().communicators[0].closed == 0);
}

TEST_CASE_FIXTURE(PageTest, "the library twice in one process writes once") {
  Page* first = take_page(path().c_str());
  REQUIRE(first != nullptr);
  CHECK(page().owner == getpid());
  CHECK(take_page(path().c_str()) == nullptr);
  munmap(first, sizeof(Page));
}

TEST_CASE_FIXTURE(PageTest, "what is no page, or not ours to write, is no trouble") {
  for (const std::string& path : {std::string(), std::string("/nonexistent"), std::string("/proc"),
                                  std::string("/dev/null"), std::string("/proc/version")}) {
    CAPTURE(path);
    CHECK(worker({"private", "step=1", "open", "fork"}, path) == 0);
  }
  resize(sizeof(Page) - 1);
  CHECK(worker({"private", "step=1"}) == 0);
}

}  // namespace muster::comm::detail
