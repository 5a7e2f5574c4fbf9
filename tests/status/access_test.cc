// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/access.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

const AccessRules kRules{"0123456789abcdef0123456789abcdef", "node-a.cluster", 8080};

using Kind = AccessDecision::Kind;

// A request from another machine, until the test says otherwise.
struct Asked {
  HttpServerRequest request;
  bool same_user = false;
  bool asked_user = false;

  explicit Asked(const std::string& target, const std::string& method = "GET") {
    request.method = method;
    request.target = target;
    request.path = target.substr(0, target.find('?'));
    if (const size_t at = target.find("token="); at != std::string::npos) {
      request.query.emplace_back("token", target.substr(at + 6, target.find('&', at) - at - 6));
    }
    request.headers = {{"host", "127.0.0.1:8080"}};
    request.peer = *SocketAddress::parse("10.0.0.9", 4000);
    request.local = *SocketAddress::parse("10.0.0.1", 8080);
  }
  Asked& with(const std::string& name, const std::string& value) {
    std::erase_if(request.headers, [&](const auto& header) { return header.first == name; });
    request.headers.emplace_back(name, value);
    return *this;
  }
  Asked& with_token() { return with("authorization", "Bearer " + kRules.token); }
  Asked& by_same_user() {
    same_user = true;
    return *this;
  }
  AccessDecision decide() {
    return decide_access(kRules, request, [this] {
      asked_user = true;
      return same_user;
    });
  }
  Kind kind() { return decide().kind; }
};

const std::string kToken = kRules.token;

}  // namespace

TEST_CASE("the token opens by query, cookie and bearer") {
  CHECK(Asked("/status?token=" + kToken).kind() == Kind::kAllow);
  CHECK(Asked("/status").with("authorization", "bearer " + kToken).kind() == Kind::kAllow);
  CHECK(Asked("/status").with("cookie", "a=b; muster_8080=" + kToken).kind() == Kind::kAllow);
  CHECK(Asked("/status").kind() == Kind::kRefuse);
  CHECK(Asked("/status").decide().status == 401);
}

TEST_CASE("what is only like the token opens nothing") {
  const std::string shorter = kToken.substr(0, kToken.size() - 1);
  for (const std::string& wrong : {std::string(), shorter, kToken + "0", shorter + "0"}) {
    CAPTURE(wrong);
    CHECK(Asked("/status?token=" + wrong).kind() == Kind::kRefuse);
    CHECK(Asked("/status").with("authorization", "Bearer " + wrong).kind() == Kind::kRefuse);
    CHECK(Asked("/status").with("cookie", "muster_8080=" + wrong).kind() == Kind::kRefuse);
  }
  CHECK(Asked("/status").with("authorization", "Basic " + kToken).kind() == Kind::kRefuse);
  // The cookie of a run on another port.
  CHECK(Asked("/status").with("cookie", "muster_8081=" + kToken).kind() == Kind::kRefuse);
}

TEST_CASE("without a token in the rules none opens") {
  AccessRules none = kRules;
  none.token = "";
  HttpServerRequest request = Asked("/status?token=").request;
  request.headers.emplace_back("authorization", "Bearer ");
  request.headers.emplace_back("cookie", "muster_8080=");
  CHECK(decide_access(none, request, [] { return false; }).kind == Kind::kRefuse);
}

TEST_CASE("a browser is led to the same address without the token and keeps a cookie") {
  Asked asked("/?a=1&token=" + kToken + "&b=2");
  const AccessDecision decision = asked.with("accept", "text/html,*/*").decide();
  CHECK(decision.kind == Kind::kRedirect);
  CHECK(decision.status == 303);
  CHECK(decision.location == "/?a=1&b=2");
  CHECK(decision.cookie == "muster_8080=" + kToken + "; Path=/; HttpOnly; SameSite=Strict");
}

TEST_CASE("the redirect leads nowhere else") {
  for (const std::string path :
       {"//evil.example/", "/\\evil.example/", "http://evil.example/", ""}) {
    CAPTURE(path);
    Asked asked(std::string(path) + "?token=" + kToken);
    CHECK(asked.with("accept", "text/html").decide().location == "/");
  }
}

TEST_CASE("what a link of another site led to goes on in our own name") {
  Asked asked("/?token=" + kToken);
  asked.with("accept", "text/html").with("sec-fetch-site", "cross-site");
  asked.with("sec-fetch-mode", "navigate").with("sec-fetch-dest", "document");
  const AccessDecision decision = asked.decide();
  CHECK(decision.kind == Kind::kRefresh);
  CHECK(decision.location == "/");
  CHECK_FALSE(decision.cookie.empty());
}

TEST_CASE("a page that is refused asks once more, since a link brings no cookie") {
  Asked asked("/");
  CHECK(asked.with("accept", "text/html").kind() == Kind::kAskAgain);
  CHECK(asked.decide().status == 401);
  CHECK(Asked(kAskAgainPath).kind() == Kind::kAllow);
  // Nothing but a page can.
  CHECK(Asked("/").kind() == Kind::kRefuse);
  CHECK(Asked("/", "HEAD").with("accept", "text/html").kind() == Kind::kRefuse);
  CHECK(Asked("/", "POST").with("accept", "text/html").kind() == Kind::kRefuse);
}

TEST_CASE("the same user of this machine reads without a token and changes nothing") {
  CHECK(Asked("/status").by_same_user().kind() == Kind::kAllow);
  CHECK(Asked("/status", "HEAD").by_same_user().kind() == Kind::kAllow);
  Asked post("/api/v1/stop", "POST");
  CHECK(post.by_same_user().kind() == Kind::kRefuse);
  CHECK(post.decide().status == 401);
  CHECK_FALSE(post.asked_user);
  CHECK(Asked("/api/v1/stop", "POST").with_token().kind() == Kind::kAllow);
}

TEST_CASE("the kernel is asked only if there is no token") {
  Asked asked("/status");
  CHECK(asked.with_token().kind() == Kind::kAllow);
  CHECK_FALSE(asked.asked_user);
}

TEST_CASE("Host is one of our names, whatever the port") {
  for (const std::string host :
       {"localhost", "LOCALHOST:1", "127.0.0.1", "127.8.9.1:99", "[::1]:8080", "10.0.0.1:8080",
        "node-a.cluster:8080", "node-a", "Node-A:70", "localhost.:8080"}) {
    CAPTURE(host);
    CHECK(Asked("/status").with_token().with("host", host).kind() == Kind::kAllow);
  }
}

TEST_CASE("a name that somebody else can make point here is refused, even with the token") {
  for (const std::string host :
       {"evil.example", "evil.example:8080", "localhost.evil.example", "node-a.evil.example",
        "10.0.0.2", "", "[::2]", "[::1", "127.0.0.1.evil", "0.0.0.0"}) {
    CAPTURE(host);
    Asked asked("/status");
    const AccessDecision decision = asked.with_token().by_same_user().with("host", host).decide();
    CHECK(decision.kind == Kind::kRefuse);
    CHECK(decision.status == 403);
    CHECK_FALSE(asked.asked_user);
  }
  Asked missing("/status");
  missing.with_token();
  std::erase_if(missing.request.headers, [](const auto& h) { return h.first == "host"; });
  CHECK(missing.kind() == Kind::kRefuse);
}

TEST_CASE("the page of another site gets nothing, whoever looks at it") {
  for (const std::string origin :
       {"https://evil.example", "null", "http://127.0.0.1:9999", "http://", "file://127.0.0.1:8080",
        "http://localhost:8080", ""}) {
    CAPTURE(origin);
    CHECK(Asked("/status").with_token().with("origin", origin).decide().status == 403);
    CHECK(Asked("/api/v1/stop", "POST").with_token().with("origin", origin).decide().status == 403);
  }
  for (const std::string site : {"cross-site", "same-site"}) {
    CAPTURE(site);
    Asked image("/status");
    image.by_same_user().with("sec-fetch-site", site).with("sec-fetch-mode", "no-cors");
    CHECK(image.decide().status == 403);
    Asked frame("/");
    frame.by_same_user().with("sec-fetch-site", site).with("sec-fetch-mode", "navigate");
    CHECK(frame.with("sec-fetch-dest", "iframe").decide().status == 403);
    Asked form("/api/v1/stop", "POST");
    form.with_token().with("sec-fetch-site", site).with("sec-fetch-mode", "navigate");
    CHECK(form.decide().status == 403);
  }
}

TEST_CASE("our own page gets what it asks for") {
  Asked fetch("/api/v1/job");
  fetch.with("cookie", "muster_8080=" + kToken).with("sec-fetch-site", "same-origin");
  CHECK(fetch.with("sec-fetch-mode", "cors").kind() == Kind::kAllow);
  Asked post("/api/v1/stop", "POST");
  post.with("cookie", "muster_8080=" + kToken).with("origin", "http://127.0.0.1:8080");
  CHECK(post.with("sec-fetch-site", "same-origin").kind() == Kind::kAllow);
  // Through a tunnel the browser calls us by another port, and is of that origin.
  post.with("host", "localhost:9000").with("origin", "http://localhost:9000");
  CHECK(post.kind() == Kind::kAllow);
}

TEST_CASE("a probe of health needs nothing") {
  CHECK(Asked("/healthz").with("host", "evil.example").kind() == Kind::kAllow);
}

TEST_CASE("secrets are equal only whole") {
  CHECK(same_secret("", ""));
  CHECK(same_secret("abc", "abc"));
  CHECK_FALSE(same_secret("abc", "abd"));
  CHECK_FALSE(same_secret("abc", "ab"));
  CHECK_FALSE(same_secret("\xff\x80", "\x7f\x00"));
}

}  // namespace muster
