// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/stream_reader.h"

#include <doctest/doctest.h>

#include "logs/stalled_file.h"
#include "logs/temp_dir.h"
#include "loop/loop_test.h"
#include "loop/timer.h"

namespace muster {

namespace {

struct StreamReaderTest : LoopTest {
  TempDir dir;
  ChunkPool chunks;
  UniqueFd worker;
  std::unique_ptr<StreamReader> reader;
  int reads = 0;
  bool open_sink = true;
  std::string sent, delivered;

  void start(std::shared_ptr<LogFile> file) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    worker.reset(ends[1]);
    StreamReader::Hooks hooks;
    hooks.on_first_output = [] {};
    hooks.on_read = [this](size_t) { ++reads; };
    hooks.may_go_on = hooks.may_deliver = [this] { return open_sink; };
    hooks.on_bytes = [this](std::string_view bytes) { delivered += bytes; };
    hooks.on_file_error = [](const LogFile::Written&) {};
    hooks.on_end = [] {};
    auto started = StreamReader::start(loop, chunks, std::make_shared<PoolGate>(loop),
                                       UniqueFd(ends[0]), std::move(file), std::move(hooks));
    REQUIRE(started.has_value());
    reader = std::move(*started);
  }

  // As a worker that never stops: fills the pipe as often as somebody makes room in it.
  void write_for(int turns) {
    for (int i = 0; i < turns; ++i) {
      const std::string line = "line " + std::to_string(sent.size()) + "\n";
      while (write(worker.get(), line.data(), line.size()) > 0)
        sent += line;
      bool turned = false;
      loop.post([&] { turned = true; });
      REQUIRE(run_until([&] { return turned; }));
    }
  }
};

}  // namespace

TEST_CASE_FIXTURE(StreamReaderTest,
                  "a log disk that hangs leaves the output in the worker's pipe") {
  StalledFile disk(dir.path + "/log");
  auto file = LogFile::create(dir.path + "/log", 0);
  REQUIRE(file.has_value());
  start(std::move(*file));
  write_for(100);
  CHECK(reads == StreamReader::kInFlight);
  CHECK(delivered.empty());  // files first
  worker.reset();
  std::string written;
  // The loop does not watch the disk, so something has to turn it.
  Owned<Timer> tick = Timer::repeat(loop, Milliseconds(2), [] {});
  REQUIRE(run_until([&] {
    written += disk.take();
    return reader->ended();
  }));
  written += disk.take();
  CHECK(written == sent);
  CHECK(delivered == sent);
}

TEST_CASE_FIXTURE(StreamReaderTest, "while a sink asks for a pause nothing more is read") {
  open_sink = false;
  start(nullptr);
  write_for(100);
  CHECK(reads == 1);
  open_sink = true;
  reader->resume();
  worker.reset();
  REQUIRE(run_until([&] { return reader->ended(); }));
  CHECK(delivered == sent);
}

}  // namespace muster
