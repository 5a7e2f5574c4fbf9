// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/etcd_v3.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>

#include "supervisor/rendezvous/base64.h"
#include "supervisor/rendezvous/etcd_answers.h"

namespace muster {

namespace {

using Json = nlohmann::json;

// A line of a watch holds the few changes of one small key.
constexpr size_t kMaxWatchLine = size_t{256} << 10;

Json transaction(const Json& comparison, const Json& action) {
  return {{"compare", Json::array({comparison})}, {"success", Json::array({action})}};
}

class EtcdV3 final : public EtcdOffice {
 public:
  EtcdV3(std::unique_ptr<HttpClient> client, const std::string& key, Milliseconds deadline)
      : client_(std::move(client)), key_(base64_encode(key)), deadline_(deadline) {}

  void look(OnView on_view) override {
    range(deadline_, [on_view](const Result<V3View>& view) {
      if (!view) return on_view(view.error());
      on_view(OfficeView{view->entry ? view->entry->value : "", view->revision});
    });
  }

  void take(const std::string& value, Milliseconds lease, OnAnswer on_answer) override {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(lease);
    const Clock::time_point before = Clock::now();
    lease_id_ = 0;
    ask("/v3/lease/grant", {{"TTL", std::to_string(seconds.count())}}, deadline_,
        [this, value, before, on_answer](const Result<HttpResponse>& answer) {
          Result<V3Lease> granted = answer ? v3_lease(*answer) : answer.error();
          if (!granted) return on_answer(granted.error());
          lease_id_ = granted->id;
          create(value, before + std::chrono::seconds(granted->seconds), on_answer);
        });
  }

  void renew(Milliseconds deadline, OnAnswer on_answer) override {
    const Clock::time_point before = Clock::now();
    ask("/v3/lease/keepalive", {{"ID", std::to_string(lease_id_)}}, deadline,
        [this, deadline, before, on_answer](const Result<HttpResponse>& answer) {
          Result<V3Lease> kept = answer ? v3_kept_lease(*answer) : answer.error();
          if (!kept) return on_answer(kept.error());
          if (kept->seconds <= 0) return on_answer(false);
          // A lease lives on when somebody deletes its key.
          confirm(deadline, before + std::chrono::seconds(kept->seconds), on_answer);
        });
  }

  Clock::time_point valid_until() const override { return valid_until_; }

  void give_up(const std::string& value, Milliseconds deadline, OnAnswer on_answer) override {
    Json same = {{"key", key_}, {"target", "VALUE"}, {"result", "EQUAL"}};
    same["value"] = base64_encode(value);
    Json remove = {{"request_delete_range", {{"key", key_}}}};
    ask("/v3/kv/txn", transaction(same, remove), deadline,
        [on_answer](const Result<HttpResponse>& answer) {
          on_answer(answer ? v3_done(*answer) : answer.error());
        });
  }

  void watch(const OfficeView& view, std::function<void(Result<void>)> on_change) override {
    HttpRequest request;
    request.method = "POST";
    request.target = "/v3/watch";
    request.deadline = deadline_;
    request.body = Json{{"create_request",
                         {{"key", key_}, {"start_revision", std::to_string(view.index + 1)}}}}
                       .dump();
    line_.clear();
    watch_ = client_->stream(
        std::move(request),
        [this, on_change](int status, std::string_view piece) {
          if (status != 200) return;  // the end says it
          if (auto news = read_watch(piece)) on_change(std::move(*news));
        },
        [on_change](const Result<HttpResponse>& answer) {
          on_change(answer ? Result<void>() : answer.error());
        });
  }

  void unwatch() override { watch_.reset(); }

  void stop() override {
    call_.reset();
    watch_.reset();
  }

  std::string local_address() const override { return call_ ? call_->local_address() : ""; }

 private:
  // Something to tell, once; then the watch is over.
  std::optional<Result<void>> read_watch(std::string_view piece) {
    line_ += piece;
    size_t end;
    while ((end = line_.find('\n')) != std::string::npos) {
      Result<bool> changed = v3_changed(std::string_view(line_).substr(0, end));
      line_.erase(0, end + 1);
      if (changed && !*changed) continue;
      watch_.reset();
      return changed ? Result<void>() : changed.error();
    }
    if (line_.size() <= kMaxWatchLine) return std::nullopt;
    watch_.reset();
    return Error{EPROTO, "the answer is not etcd's"};
  }

  void create(const std::string& value, Clock::time_point valid_until, const OnAnswer& on_answer) {
    Json absent = {{"key", key_}, {"target", "CREATE"}, {"result", "EQUAL"}};
    absent["create_revision"] = "0";
    Json put = {{"key", key_}, {"value", base64_encode(value)}};
    put["lease"] = std::to_string(lease_id_);
    ask("/v3/kv/txn", transaction(absent, {{"request_put", put}}), deadline_,
        [this, valid_until, on_answer](const Result<HttpResponse>& answer) {
          Result<bool> done = answer ? v3_done(*answer) : answer.error();
          if (done && *done) valid_until_ = valid_until;
          on_answer(std::move(done));
        });
  }

  void confirm(Milliseconds deadline, Clock::time_point valid_until, const OnAnswer& on_answer) {
    range(deadline, [this, valid_until, on_answer](const Result<V3View>& view) {
      if (!view) return on_answer(view.error());
      const bool ours = view->entry && view->entry->lease == lease_id_;
      if (ours) valid_until_ = valid_until;
      on_answer(ours);
    });
  }

  void range(Milliseconds deadline, const std::function<void(Result<V3View>)>& on_view) {
    ask("/v3/kv/range", {{"key", key_}}, deadline, [on_view](const Result<HttpResponse>& answer) {
      on_view(answer ? v3_view(*answer) : answer.error());
    });
  }

  void ask(std::string target, const Json& body, Milliseconds deadline,
           HttpClient::OnDone on_done) {
    HttpRequest request{.method = "POST",
                        .target = std::move(target),
                        .headers = {{"Content-Type", "application/json"}},
                        .body = body.dump(),
                        .deadline = deadline,
                        .repeatable = true};
    call_ = client_->send(std::move(request), std::move(on_done));
  }

  std::unique_ptr<HttpClient> client_;
  std::string key_;  // as it stands in JSON
  Milliseconds deadline_;
  int64_t lease_id_ = 0;
  Clock::time_point valid_until_;
  std::string line_;  // of the watch, not yet whole
  std::unique_ptr<HttpCall> call_;
  std::unique_ptr<HttpCall> watch_;
};

}  // namespace

std::unique_ptr<EtcdOffice> etcd_v3_office(std::unique_ptr<HttpClient> client,
                                           const std::string& key, Milliseconds deadline) {
  return std::make_unique<EtcdV3>(std::move(client), key, deadline);
}

}  // namespace muster
