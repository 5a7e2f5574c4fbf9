// SPDX-License-Identifier: Apache-2.0
// page_worker STEP...: does these steps in turn and tells of them in its page, as the worker
// library does. "2:STEP" is a step of rank 2 alone, "!2:STEP" one of all others.
//
//   comm=NAME=0,1,3        a communicator of these ranks; later steps are in it
//   do=KIND=COUNT          an operation that ends well (float32; root 0)
//   in=KIND=COUNT          one that goes on
//   fail=KIND=COUNT        one that fails
//   broken                 the last one fails now
//   recv=PEER send=PEER    a message that does not come, or is not taken
//   close                  the communicator
//   progress=STEP=TOTAL=LOSS   value=NAME=NUMBER   beat
//   say=TEXT  gate=FIFO  wait  exit=CODE  kill=SIGNAL  error=TEXT=COMM_ERROR  vandal
#include <fcntl.h>
#include <muster/comm/record.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "nccl/report/own_page.h"
#include "nccl/report/page_writer.h"

using namespace muster::comm;
using detail::OpKind;
using detail::PageBlock;

namespace {

std::vector<std::unique_ptr<PageBlock>> blocks;
PageBlock::Slot last;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  parts.resize(std::max<size_t>(parts.size(), 4));
  return parts;
}

int own_rank() {
  const char* rank = std::getenv("RANK");
  return rank ? std::atoi(rank) : 0;
}

bool for_us(std::string& step) {
  const size_t colon = step.find(':');
  if (colon == std::string::npos || step.find('=') < colon) return true;
  const bool others = step[0] == '!';
  const bool named = std::atoi(step.c_str() + (others ? 1 : 0)) == own_rank();
  step.erase(0, colon + 1);
  return named != others;
}

OpKind kind_of(const std::string& name) {
  for (int kind = 0; kind < detail::kOpKinds; ++kind) {
    if (name == detail::to_string(static_cast<OpKind>(kind))) return static_cast<OpKind>(kind);
  }
  std::fprintf(stderr, "page_worker: no operation %s\n", name.c_str());
  std::exit(2);
}

void make_block(const std::string& name, const std::string& members) {
  std::vector<int> ranks;
  for (const std::string& rank : split(members, ',')) {
    if (!rank.empty()) ranks.push_back(std::atoi(rank.c_str()));
  }
  const auto own = std::find(ranks.begin(), ranks.end(), own_rank());
  if (own == ranks.end()) return;
  detail::BlockPlan plan;
  plan.id = std::hash<std::string>()(name);
  plan.name = name;
  plan.rank = static_cast<int>(own - ranks.begin());
  plan.size = static_cast<int>(ranks.size());
  plan.world_ranks = ranks;
  blocks.push_back(std::make_unique<PageBlock>(plan));
}

PageBlock::Slot begin(OpKind kind, size_t count, int root_or_peer) {
  detail::Operation operation;
  operation.kind = kind;
  operation.root_or_peer = root_or_peer;
  std::vector<float> memory(count);
  const Buffer buffer(memory);
  operation.out = buffer;
  if (kind != OpKind::kRecv) operation.in = buffer;
  return blocks.back()->begin(operation);
}

void write_error(const std::string& text, const std::string& comm_error) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  std::FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file,
               "{\"message\": {\"message\": \"%s\", \"extraInfo\": {\"py_callstack\": \"main\", "
               "\"comm_error\": \"%s\", \"timestamp\": \"0\"}}}",
               text.c_str(), comm_error.c_str());
  std::fclose(file);
}

// What a broken program may do to memory that it has mapped.
void vandalise() {
  auto* bytes = reinterpret_cast<unsigned char*>(&detail::own_page());
  std::mt19937 random(static_cast<unsigned>(own_rank()));
  for (size_t i = sizeof(uint64_t) + 4; i < sizeof(muster::worker_page::Page); ++i)
    bytes[i] = static_cast<unsigned char>(random());
}

void operate(const std::string& verb, const std::vector<std::string>& words) {
  const bool message = verb == "recv" || verb == "send";
  const OpKind kind = kind_of(message ? verb : words[1]);
  const size_t count = message ? 1 : std::strtoul(words[2].c_str(), nullptr, 10);
  const int peer = message ? std::atoi(words[1].c_str()) : 0;
  last = begin(kind, count, peer);
  if (verb == "do" || verb == "fail") blocks.back()->end(last, verb == "do");
}

void end_or_wait(const std::string& verb, const std::vector<std::string>& words) {
  if (verb == "exit") std::_Exit(std::atoi(words[1].c_str()));
  if (verb == "kill") std::raise(std::atoi(words[1].c_str()));
  if (verb == "gate") ::close(::open(words[1].c_str(), O_RDONLY));  // until somebody opens it
  while (verb == "wait")
    ::pause();
}

void do_step(const std::string& step) {
  const std::vector<std::string> words = split(step, '=');
  const std::string& verb = words[0];
  if (verb == "comm") {
    make_block(words[1], words[2]);
  } else if (verb == "do" || verb == "in" || verb == "fail" || verb == "recv" || verb == "send") {
    operate(verb, words);
  } else if (verb == "broken") {
    blocks.back()->end(last, false);
  } else if (verb == "close") {
    blocks.back()->close();
  } else if (verb == "progress") {
    report_progress(
        {std::atol(words[1].c_str()), std::atol(words[2].c_str()), std::atof(words[3].c_str())});
  } else if (verb == "value") {
    report_values({{words[1], std::atof(words[2].c_str())}});
  } else if (verb == "beat") {
    heartbeat();
  } else if (verb == "say") {
    std::printf("%s\n", words[1].c_str());
    std::fflush(stdout);
  } else if (verb == "error") {
    write_error(words[1], words[2]);
  } else if (verb == "vandal") {
    vandalise();
  } else {
    end_or_wait(verb, words);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string step = argv[i];
    if (for_us(step)) do_step(step);
  }
  return 0;
}
