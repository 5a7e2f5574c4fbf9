// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loop/http_message.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// The messages that serve those who look at the job at the coordinator: requests to the HTTP
// handler of another node (remote_request.h, request_desk.h), and samples of its workers. Parts of
// messages.h.

// Most bytes of an answer in one message.
inline constexpr size_t kMaxPiece = size_t{64} << 10;

namespace message {

// Agent to coordinator.

// An HTTP request's answer (remote_request.h): its head, its body in pieces, its end. Only as many
// bytes as there was credit for.
struct Answer {
  int64_t id = 0;
  int status = 200;
  HttpHeaders headers;
  int64_t length = -1;  // of the body, -1: it is not known yet
};
struct Piece {
  int64_t id = 0;
  std::string bytes;  // at most kMaxPiece
};
struct AnswerEnd {
  int64_t id = 0;
};
struct AnswerBroken {  // there is no more of it
  int64_t id = 0;
};
// What was measured of the sender's workers. No sign of life: heartbeats are sent all the same.
struct Samples {
  int attempt = 0;
  std::vector<RankSample> samples;  // at most kMaxSamplesPerMessage
};

// Coordinator to agent.

// Always a GET. Ids grow and are never used again on a connection.
struct Request {
  int64_t id = 0;
  std::string target;
  HttpHeaders headers;
  int64_t credit = 0;  // bytes of the body that may come without more
};
struct Credit {
  int64_t id = 0;
  int64_t bytes = 0;  // that many more
};
struct Cancel {  // nobody wants the answer any more
  int64_t id = 0;
};
// Somebody looks: samples are wanted so often for a while.
struct Watch {
  int every_ms = 2'000;
  int for_ms = 15'000;
};

}  // namespace message

}  // namespace muster
