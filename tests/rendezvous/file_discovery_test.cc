// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/file_discovery.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "cli/temp_tree.h"
#include "loop/interfaces.h"
#include "rendezvous/discovery_fixture.h"
#include "store/test_peer.h"
#include "store/wire.h"

namespace muster {

namespace {

struct FileTest : LoopTest {
  TempTree tree;
  RendezvousPlan plan;

  FileTest() {
    plan.meeting = Meeting::kFile;
    plan.max_nodes = 2;
    plan.file = tree.path("meeting");
  }

  std::unique_ptr<Finder> node(const std::string& run_id = "run") {
    auto finder = std::make_unique<Finder>(loop);
    finder->discovery =
        std::make_unique<FileDiscovery>(loop, plan, run_id, finder->listen(), finder->callbacks());
    return finder;
  }

  // The lock is let go in the pool.
  void gone(std::unique_ptr<Finder>& finder) {
    finder.reset();
    REQUIRE(run_until([this] { return !loop.has_requests(); }));
  }

  std::string content() const {
    std::ifstream file(plan.file);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void write(const std::string& text) const { std::ofstream(plan.file) << text; }
};

}  // namespace

TEST_CASE_FIXTURE(FileTest, "the first at the file hosts, the others find it") {
  auto host = node();
  REQUIRE(host->find());
  REQUIRE(host->hosts());
  CHECK(host->found[0].port == host->found[0].store->port());
  for (int i = 0; i < 3; ++i) {
    auto other = node();
    REQUIRE(other->find());
    CHECK_FALSE(other->hosts());
    CHECK(other->found[0].port == host->found[0].port);
    CHECK(other->found[0].host == host->found[0].host);
    REQUIRE_FALSE(other->found[0].addresses.empty());
    // The first address works.
    TestPeer peer(loop, other->found[0].port, other->found[0].addresses[0]);
  }
}

TEST_CASE_FIXTURE(FileTest, "two that come at once agree on who hosts") {
  auto a = node();
  auto b = node();
  a->discovery->find();
  b->discovery->find();
  REQUIRE(run_until([&] { return !a->found.empty() && !b->found.empty(); }));
  CHECK(a->hosts() != b->hosts());
  CHECK(a->found[0].port == b->found[0].port);
}

TEST_CASE_FIXTURE(FileTest, "the file of a finished run is used again, by the same run id too") {
  auto first = node();
  REQUIRE(first->find());
  gone(first);
  CHECK(content().empty());
  auto second = node();
  REQUIRE(second->find());
  CHECK(second->hosts());
}

TEST_CASE_FIXTURE(FileTest, "what a killed host has written is not believed") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto opened = open_meeting_file(plan.file);
    if (!opened || !opened->lock) _exit(1);
    (void)write_meeting_note(opened->lock, plan.file,
                             meeting_note_text({"run", "127.0.0.1", {"127.0.0.1"}, 9}));
    pause();
    _exit(0);
  }
  // Not over a file descriptor of ours: its lock must be the child's alone.
  while (content().empty())
    usleep(1000);
  auto other = node();
  REQUIRE(other->find());
  CHECK_FALSE(other->hosts());
  CHECK(other->found[0].port == 9);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(content().empty());
  REQUIRE(other->find());
  CHECK(other->hosts());
}

TEST_CASE_FIXTURE(FileTest, "a file at which another run meets is waited for, and that is said") {
  auto host = node("theirs");
  REQUIRE(host->find());
  auto other = node("ours");
  other->discovery->find();
  REQUIRE(run_until([&] { return !other->steps.empty(); }));
  CHECK(other->steps[0] == "file " + plan.file + ": another run meets there, 'theirs'");
  CHECK(other->found.empty());
  gone(host);
  REQUIRE(run_until([&] { return !other->found.empty(); }));
  CHECK(other->hosts());
}

TEST_CASE_FIXTURE(FileTest, "a host that has not written yet is waited for") {
  auto lock = open_meeting_file(plan.file);
  REQUIRE(lock.has_value());
  REQUIRE(lock->lock);
  auto other = node();
  other->discovery->find();
  REQUIRE(run_until([&] { return !other->steps.empty(); }));
  CHECK(other->steps[0] == "file " + plan.file + ": no host has written where it is yet");
  REQUIRE(
      write_meeting_note(lock->lock, plan.file, meeting_note_text({"run", "localhost", {}, 29400}))
          .has_value());
  REQUIRE(run_until([&] { return !other->found.empty(); }));
  CHECK(other->found[0].host == "localhost");
  CHECK(other->found[0].port == 29400);
  CHECK(is_local(*SocketAddress::parse(other->found[0].addresses.at(0), 0), {}));
}

TEST_CASE_FIXTURE(FileTest, "the address that was given is what others are told") {
  plan.local_addr = "127.0.0.1";
  auto host = node();
  REQUIRE(host->find());
  CHECK(host->listened == std::vector<std::string>{"127.0.0.1"});
  CHECK(host->found[0].host == "127.0.0.1");
  plan.local_addr.clear();
  auto other = node();
  REQUIRE(other->find());
  CHECK(other->found[0].addresses == std::vector<std::string>{"127.0.0.1"});
}

TEST_CASE_FIXTURE(FileTest, "an agent that comes before the host has an owner is not lost") {
  plan.local_addr = "127.0.0.1";
  auto host = node();
  REQUIRE(host->find());
  TestPeer agent(loop, host->found[0].port);
  agent.send(std::string(kControlPreamble));
  bool later = false;
  auto timer = Timer::start(loop, Milliseconds(50), [&] { later = true; });
  REQUIRE(run_until([&] { return later; }));
  bool handed = false;
  host->found[0].store->set_on_stranger(
      [&](UniqueFd, const std::string&, const SocketAddress&) { handed = true; });
  CHECK(run_until([&] { return handed; }));
}

TEST_CASE_FIXTURE(FileTest, "a file of somebody else's is not touched") {
  write("precious\n");
  auto host = node();
  CHECK_FALSE(host->find());
  CHECK(host->failures[0].message ==
        "file " + plan.file + ": it is not empty and not a meeting point of muster");
  CHECK(content() == "precious\n");
  write("{\"mus");  // the beginning of a note whose host was killed
  auto second = node();
  REQUIRE(second->find());
  CHECK(second->hosts());
}

TEST_CASE_FIXTURE(FileTest, "a path that cannot be a file is an error at once") {
  plan.file = tree.path("nowhere/meeting");
  auto host = node();
  CHECK_FALSE(host->find());
  CHECK(host->failures[0].message == "file " + plan.file + ": No such file or directory");
  plan.file = tree.root();
  auto second = node();
  CHECK_FALSE(second->find());
  plan.file = tree.path("fifo");
  REQUIRE(mkfifo(plan.file.c_str(), 0600) == 0);
  auto third = node();
  CHECK_FALSE(third->find());
  CHECK(third->failures[0].message == "file " + plan.file + ": not a plain file");
}

TEST_CASE_FIXTURE(FileTest, "one that is dropped while the pool works for it leaves no lock") {
  for (int turns = 0; turns < 4; ++turns) {
    auto dropped = node();
    dropped->discovery->find();
    for (int i = 0; i < turns; ++i) {
      bool turned = false;
      loop.post([&] { turned = true; });
      REQUIRE(run_until([&] { return turned; }));
    }
    gone(dropped);
    auto next = node();
    REQUIRE(next->find());
    CHECK(next->hosts());
    gone(next);
  }
}

TEST_CASE("a note comes back as it was written, anything else is none") {
  const MeetingNote note{"team/\"job\"\n", "10.0.0.1", {"10.0.0.1", "fe80::1%lo"}, 40000};
  const std::string text = meeting_note_text(note);
  const auto back = read_meeting_note(text);
  REQUIRE(back.has_value());
  CHECK(back->run_id == note.run_id);
  CHECK(back->host == note.host);
  CHECK(back->addresses == note.addresses);
  CHECK(back->port == note.port);
  for (size_t size = 0; size < text.size(); ++size)
    CHECK_FALSE(read_meeting_note(text.substr(0, size)).has_value());
  for (const std::string& bad : {
           std::string("\n"),
           std::string("null\n"),
           std::string(kMaxMeetingNote - 1, '[') + "\n",
           std::string(
               "{\"muster\":2,\"run_id\":\"r\",\"host\":\"h\",\"addresses\":[],\"port\":1}\n"),
           std::string(
               "{\"muster\":1,\"run_id\":\"r\",\"host\":\"\",\"addresses\":[],\"port\":1}\n"),
           std::string(
               "{\"muster\":1,\"run_id\":\"r\",\"host\":\"h\",\"addresses\":[],\"port\":0}\n"),
           std::string(
               "{\"muster\":1,\"run_id\":\"r\",\"host\":\"h\",\"addresses\":[],\"port\":65536}\n"),
           std::string(
               "{\"muster\":1,\"run_id\":\"r\",\"host\":\"h\",\"addresses\":[\"n\"],\"port\":1}\n"),
           std::string(
               "{\"muster\":1,\"run_id\":\"r\",\"host\":\"h\",\"addresses\":[7],\"port\":1}\n"),
           std::string(
               "{\"muster\":1,\"run_id\":\"r\",\"host\":\"h\",\"addresses\":{},\"port\":1}\n"),
       }) {
    CAPTURE(bad.substr(0, 80));
    CHECK_FALSE(read_meeting_note(bad).has_value());
  }
  MeetingNote crowded = note;
  crowded.addresses.assign(kMaxMeetingAddresses, "10.0.0.1");
  CHECK(read_meeting_note(meeting_note_text(crowded)).has_value());
  crowded.addresses.emplace_back("10.0.0.2");
  CHECK_FALSE(read_meeting_note(meeting_note_text(crowded)).has_value());
}

}  // namespace muster
