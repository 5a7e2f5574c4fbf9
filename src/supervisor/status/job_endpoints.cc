// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/job_endpoints.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "supervisor/stacks/stack_groups.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/failure_rows.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/rows.h"

namespace muster {

namespace {

// {"<name>": [...]}, the array filled by `fill`.
template <typename Fill>
std::string list_json(const char* name, Fill fill) {
  std::string text;
  JsonOut out(text, JsonOut::Layout::kLines);
  out.begin_object();
  out.key(name);
  out.begin_array();
  fill(out);
  out.end_array();
  out.end_object();
  text += '\n';
  return text;
}

void reply_change(HttpExchange& exchange, const std::string& refused) {
  if (!refused.empty()) return reply_error(exchange, 409, refused);
  reply_json(exchange, "{\"ok\": true}\n");
}

std::string asker(const HttpServerRequest& request) {
  return "HTTP from " + request.peer.host();
}

std::string dump_json(const std::vector<event::EvidenceSaved>& saved) {
  std::string text;
  JsonOut out(text, JsonOut::Layout::kLines);
  out.begin_object();
  out.key("groups");
  out.begin_array();
  for (const std::string& line : merged_groups(saved))
    out.value(line);
  out.end_array();
  out.key("saved");
  out.begin_array();
  for (const event::EvidenceSaved& one : saved) {
    out.begin_object();
    out.key("attempt");
    out.value(one.attempt);
    for (const auto& [key, value] :
         {std::pair("host", &one.host), std::pair("why", &one.why),
          std::pair("folder", &one.folder), std::pair("trouble", &one.trouble)}) {
      out.key(key);
      out.value(*value);
    }
    out.end_object();
  }
  out.end_array();
  out.end_object();
  text += '\n';
  return text;
}

}  // namespace

void handle_healthz(StatusContext&, StatusCall call) {
  reply_text(*call.exchange, 200, "ok\n");
}

void handle_job(StatusContext& context, StatusCall call) {
  std::string text;
  JsonOut out(text, JsonOut::Layout::kLines);
  write_job(out, view_of(context.source));
  text += '\n';
  reply_json(*call.exchange, std::move(text));
}

void handle_nodes(StatusContext& context, StatusCall call) {
  const JobView view = view_of(context.source);
  reply_json(*call.exchange, list_json("nodes", [&](JsonOut& out) {
    for (const NodeRow& row : node_rows(view))
      write_node(out, view, row);
  }));
}

void handle_attempts(StatusContext& context, StatusCall call) {
  const JobView view = view_of(context.source);
  reply_json(*call.exchange, list_json("attempts", [&](JsonOut& out) {
    for (const AttemptState& attempt : view.state.attempts)
      write_attempt(out, view, attempt);
  }));
}

void handle_ranks(StatusContext& context, StatusCall call) {
  const JobView view = view_of(context.source);
  const auto attempts = choose_attempts(view.state, call.request(), DefaultAttempts::kCurrent);
  if (!attempts) {
    return reply_error(*call.exchange, attempts.error().code, attempts.error().message,
                       "GET /api/v1/attempts lists those there are");
  }
  const std::string_view wanted = call.request().parameter("ranks").value_or("");
  const auto ranges = parse_rank_list(wanted);
  if (!wanted.empty() && !ranges) {
    return reply_error(*call.exchange, 400, "ranks= is a list like 0-7,9");
  }
  std::string text;
  JsonOut out(text, JsonOut::Layout::kLines);
  out.begin_object();
  const AttemptState* attempt = attempts->empty() ? nullptr : attempts->front();
  out.key("attempt");
  attempt == nullptr ? out.null() : out.value(attempt->attempt);
  out.key("ranks");
  out.begin_array();
  for (size_t i = 0; attempt != nullptr && i < attempt->ranks.size(); ++i) {
    const RankState& rank = attempt->ranks[i];
    if (!ranges || in_rank_list(*ranges, rank.rank)) write_rank(out, view, *attempt, rank);
  }
  out.end_array();
  out.end_object();
  text += '\n';
  reply_json(*call.exchange, std::move(text));
}

void handle_failures(StatusContext& context, StatusCall call) {
  const JobView view = view_of(context.source);
  const std::vector<AttemptState>& attempts = view.state.attempts;
  reply_json(*call.exchange, list_json("failures", [&](JsonOut& out) {
    for (size_t i = attempts.size(); i-- > 0;) {
      if (attempts[i].root_cause) write_failure(out, view, *attempts[i].root_cause);
      for (const event::FailureFound& other : attempts[i].other_causes)
        write_failure(out, view, other);
    }
  }));
}

void handle_stop(StatusContext& context, StatusCall call) {
  const bool kill = call.request().parameter("kill").value_or("0") != "0";
  reply_change(*call.exchange, context.source.stop(asker(call.request()), kill));
}

// Answered when all nodes have told. Whoever asked may be gone by then.
void handle_dump(StatusContext& context, StatusCall call) {
  auto waiting = std::make_shared<std::unique_ptr<HttpExchange>>(std::move(call.exchange));
  const std::string who = asker((*waiting)->request());
  const std::string refused =
      context.source.dump(who, [waiting](const std::vector<event::EvidenceSaved>& saved) {
        if (*waiting) reply_json(**waiting, dump_json(saved));
        waiting->reset();
      });
  if (!refused.empty()) return reply_change(**waiting, refused);
  if (*waiting) (*waiting)->set_callbacks({nullptr, [waiting] { waiting->reset(); }});
}

void handle_restart(StatusContext& context, StatusCall call) {
  reply_change(*call.exchange, context.source.restart(asker(call.request())));
}

}  // namespace muster
