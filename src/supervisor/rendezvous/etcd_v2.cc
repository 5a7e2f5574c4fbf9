// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/etcd_v2.h"

#include <algorithm>

#include "loop/http_target.h"
#include "supervisor/rendezvous/etcd_answers.h"

namespace muster {

namespace {

// A watch lasts until something happens; whoever watches looks again long before.
constexpr Milliseconds kWatchDeadline{3'600'000};

std::string encoded_path(std::string_view key) {
  std::string path;
  while (!key.empty()) {
    const size_t end = std::min(key.find('/', 1), key.size());
    path += "/" + percent_encode(key.substr(1, end - 1));
    key.remove_prefix(end);
  }
  return path;
}

class EtcdV2 final : public EtcdOffice {
 public:
  EtcdV2(std::unique_ptr<HttpClient> client, const std::string& key, Milliseconds deadline)
      : client_(std::move(client)), path_("/v2/keys" + encoded_path(key)), deadline_(deadline) {}

  void look(OnView on_view) override {
    // Answered by a majority: a member that was cut off would show an office that is long vacant.
    ask("GET", path_ + "?quorum=true", "", deadline_,
        [on_view](const Result<HttpResponse>& answer) {
          on_view(answer ? v2_view(*answer) : answer.error());
        });
  }

  void take(const std::string& value, Milliseconds lease, OnAnswer on_answer) override {
    value_ = value;
    lease_ = std::chrono::ceil<std::chrono::seconds>(lease);
    begin("prevExist=false&value=" + percent_encode(value), deadline_, on_answer);
  }

  void renew(Milliseconds deadline, OnAnswer on_answer) override {
    // Without `refresh` every watcher would be told.
    begin("refresh=true&prevValue=" + percent_encode(value_), deadline, on_answer);
  }

  Clock::time_point valid_until() const override { return valid_until_; }

  void give_up(const std::string& value, Milliseconds deadline, OnAnswer on_answer) override {
    ask("DELETE", path_ + "?prevValue=" + percent_encode(value), "", deadline,
        [on_answer](const Result<HttpResponse>& answer) {
          on_answer(answer ? v2_done(*answer) : answer.error());
        });
  }

  void watch(const OfficeView& view, std::function<void(Result<void>)> on_change) override {
    HttpRequest request;
    request.target = path_ + "?wait=true&waitIndex=" + std::to_string(view.index + 1);
    request.deadline = kWatchDeadline;
    watch_ = client_->send(std::move(request), [on_change](const Result<HttpResponse>& answer) {
      // Whatever it says, even that its history does not go back that far: time to look.
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
  void begin(const std::string& form, Milliseconds deadline, const OnAnswer& on_answer) {
    const Clock::time_point before = Clock::now();
    ask("PUT", path_, form + "&ttl=" + std::to_string(lease_.count()), deadline,
        [this, before, on_answer](const Result<HttpResponse>& answer) {
          Result<bool> done = answer ? v2_done(*answer) : answer.error();
          if (done && *done) valid_until_ = before + lease_;
          on_answer(std::move(done));
        });
  }

  void ask(std::string method, std::string target, std::string form, Milliseconds deadline,
           HttpClient::OnDone on_done) {
    HttpRequest request{.method = std::move(method),
                        .target = std::move(target),
                        .headers = {},
                        .body = std::move(form),
                        .deadline = deadline,
                        .repeatable = true};
    if (!request.body.empty())
      request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
    call_ = client_->send(std::move(request), std::move(on_done));
  }

  std::unique_ptr<HttpClient> client_;
  std::string path_;
  Milliseconds deadline_;
  std::string value_;
  std::chrono::seconds lease_{0};
  Clock::time_point valid_until_;
  std::unique_ptr<HttpCall> call_;
  std::unique_ptr<HttpCall> watch_;
};

}  // namespace

std::unique_ptr<EtcdOffice> etcd_v2_office(std::unique_ptr<HttpClient> client,
                                           const std::string& key, Milliseconds deadline) {
  return std::make_unique<EtcdV2>(std::move(client), key, deadline);
}

}  // namespace muster
