// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/search_endpoint.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/status/answers.h"
#include "supervisor/status/numbers.h"
#include "supervisor/status/search_session.h"

namespace muster {

namespace {

constexpr int64_t kMaxLimit = 20'000;
constexpr int64_t kMaxContext = 10;

// "1", or the name alone.
bool is_set(const HttpServerRequest& request, std::string_view name) {
  const auto value = request.parameter(name);
  return value && *value != "0";
}

Result<int64_t> number_of(const HttpServerRequest& request, std::string_view name,
                          int64_t otherwise) {
  const auto text = request.parameter(name);
  if (!text || text->empty()) return otherwise;
  const auto number = whole_number(*text);
  if (!number) return Error{400, std::string(name) + "= is a whole number"};
  return *number;
}

Result<SearchRequest> search_of(const HttpServerRequest& request) {
  SearchRequest search;
  search.text = request.parameter("q").value_or("");
  if (search.text.empty()) return Error{400, "q= says what to search for"};
  search.is_regex = is_set(request, "regex");
  search.case_sensitive = is_set(request, "case");
  struct {
    const char* name;
    int64_t* to;
  } const numbers[] = {{"context", &search.context},
                       {"limit", &search.limit},
                       {"from", &search.from},
                       {"to", &search.to}};
  for (const auto& [name, to] : numbers) {
    auto number = number_of(request, name, *to);
    if (!number) return number.error();
    *to = *number;
  }
  search.context = std::min(search.context, kMaxContext);
  search.limit = std::clamp<int64_t>(search.limit, 1, kMaxLimit);
  return search;
}

}  // namespace

void handle_search(StatusContext& context, StatusCall call) {
  const HttpServerRequest& request = call.request();
  Result<SearchRequest> search = search_of(request);
  if (!search) return reply_error(*call.exchange, search.error().code, search.error().message);
  auto pattern = SearchPattern::compile({search->text, search->is_regex, search->case_sensitive});
  if (!pattern)
    return reply_error(*call.exchange, 400, pattern.error().message,
                       search->is_regex ? "the syntax is that of RE2" : "");
  Result<std::vector<ChosenLog>> logs = choose_logs(context.source, request, DefaultAttempts::kAll);
  if (!logs) return reply_error(*call.exchange, logs.error().code, logs.error().message);
  // A node asks another for what is there alone.
  if (call.forwarded) std::erase_if(*logs, [](const ChosenLog& log) { return !log.here; });
  const bool is_part = search->from > 0 || search->to < INT64_MAX;
  if (is_part && logs->size() != 1)
    return reply_error(*call.exchange, 400, "from= and to= are places in one log",
                       "choose it with attempt=, ranks= and streams=");
  if (request.method == "HEAD")
    return call.exchange->reply(200, {{"Content-Type", SearchSession::kContentType}}, "");
  if (context.sessions.count<SearchSession>() >= SearchSession::kMaxSessions)
    return reply_error(*call.exchange, 503, "too many searches are going on",
                       "end one, or ask again later");
  context.sessions.add(std::make_unique<SearchSession>(context, std::move(call.exchange),
                                                       std::move(*search), std::move(*pattern),
                                                       std::move(*logs)));
}

}  // namespace muster
