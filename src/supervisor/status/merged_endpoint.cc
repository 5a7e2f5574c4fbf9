// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/merged_endpoint.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/browse/merged.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/status/answers.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/merged_json.h"
#include "supervisor/status/remote_call.h"

namespace muster {

namespace {

// Of one node: lines of kMaxMergedLines as JSON, and nothing near what would hurt.
constexpr size_t kMaxPart = size_t{16} << 20;
constexpr size_t kMaxNodes = 256;  // asked for one page
// Of all nodes together. Each is asked for its share and some lines more: a page that is shorter
// for it goes on with the next.
constexpr int64_t kMostText = int64_t{16} << 20;
constexpr int64_t kLeastLines = 100;

// One page. Each node merges its own logs; this one merges those pages.
class MergedSession final : public StatusSession {
 public:
  MergedSession(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                const MergedQuery& query)
      : context_(context), exchange_(std::move(exchange)), query_(query) {
    exchange_->set_callbacks({nullptr, [this] { context_.sessions.end(*this); }});
  }

  void read(const std::vector<ChosenLog>& logs, bool forwarded) {
    std::vector<MergedLog> here;
    std::map<int, std::vector<ChosenLog>> elsewhere;
    for (const ChosenLog& log : logs) {
      int stream = log.stream == Stream::kStdout ? 0 : 1;
      if (!log.path.empty()) here.push_back({log.rank, stream, log.path});
      if (!log.here && !forwarded) elsewhere[log.node].push_back(log);
    }
    int64_t nodes = std::max<int64_t>(1, static_cast<int64_t>(elsewhere.size()));
    share_.max_lines = std::clamp(4 * query_.max_lines / nodes,
                                  std::min(kLeastLines, query_.max_lines), query_.max_lines);
    share_.max_bytes = std::min(query_.max_bytes, kMostText / nodes);
    // Counted first: an answer that comes at once must not be taken for the last.
    waiting_ = 1 + elsewhere.size();
    for (const auto& [node, of_node] : elsewhere)
      ask(node, of_node);
    task_ = read_merged(context_.reader, std::move(here), query_,
                        [this](MergedPage page) { add(std::move(page)); });
  }

 private:
  struct Part {
    std::string host;
    std::string body;
    bool right = false;  // its head said 200
    std::unique_ptr<RemoteCall> call;
  };

  std::string target(const std::vector<ChosenLog>& logs) const {
    std::vector<int> ranks;
    std::set<Stream> streams;
    for (const ChosenLog& log : logs) {
      if (ranks.empty() || ranks.back() != log.rank) ranks.push_back(log.rank);
      streams.insert(log.stream);
    }
    std::string names;
    for (Stream stream : streams)
      names.append(names.empty() ? "" : ",").append(stream_name(stream));
    return "/api/v1/merged?attempt=" + std::to_string(logs.front().attempt) +
           "&ranks=" + format_ranges(std::move(ranks)) + "&streams=" + names +
           "&cursor=" + merged_cursor(query_.way, query_.place) +
           "&lines=" + std::to_string(share_.max_lines) +
           "&max_bytes=" + std::to_string(share_.max_bytes) +
           "&max_line=" + std::to_string(query_.max_line);
  }

  void ask(int node, const std::vector<ChosenLog>& logs) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>());
    part.host = logs.front().host;
    RemoteCall::Callbacks callbacks;
    callbacks.on_head = [&part](int status, const HttpHeaders&) { part.right = status == 200; };
    callbacks.on_piece = [this, &part](std::string_view piece) {
      part.body += piece;
      if (part.body.size() <= kMaxPart) return;
      part.call.reset();
      miss(part.host);
    };
    callbacks.on_end = [this, &part] {
      auto page = part.right ? read_merged_answer(part.body, query_) : std::nullopt;
      part.body = {};
      if (page) {
        add(std::move(*page));
      } else {
        miss(part.host);
      }
    };
    callbacks.on_lost = [this, &part] { miss(part.host); };
    bool many = parts_.size() > kMaxNodes;
    if (!many) {
      part.call = RemoteCall::start(context_.loop, context_.source, logs.front().attempt, node,
                                    target(logs), std::move(callbacks));
    }
    if (part.call) return;
    answer_.unreachable.push_back(part.host);
    --waiting_;
  }

  void add(MergedPage page) {
    pages_.push_back(std::move(page));
    one_less();
  }

  void miss(const std::string& host) {
    answer_.unreachable.push_back(host);
    one_less();
  }

  void one_less() {
    if (--waiting_ > 0) return;
    answer_.page = join_merged(query_, std::move(pages_));
    reply_json(*exchange_, write_merged(query_, answer_));
    context_.sessions.end(*this);
  }

  StatusContext& context_;
  std::unique_ptr<HttpExchange> exchange_;
  const MergedQuery query_;
  MergedQuery share_ = query_;  // of each other node
  size_t waiting_ = 0;          // parts that have not come
  std::vector<MergedPage> pages_;
  MergedAnswer answer_;
  std::unique_ptr<BrowseTask> task_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace

void handle_merged(StatusContext& context, StatusCall call) {
  Result<MergedQuery> query = merged_query(call.request());
  if (!query) return reply_error(*call.exchange, query.error().code, query.error().message);
  Result<std::vector<ChosenLog>> logs =
      choose_logs(context.source, call.request(), DefaultAttempts::kCurrent);
  if (!logs) return reply_error(*call.exchange, logs.error().code, logs.error().message);
  auto session = std::make_unique<MergedSession>(context, std::move(call.exchange), *query);
  MergedSession& added = *session;
  context.sessions.add(std::move(session));
  added.read(*logs, call.forwarded);
}

}  // namespace muster
