// SPDX-License-Identifier: Apache-2.0
#include "loop/tls.h"

#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include <cstdlib>

#include "cli/temp_tree.h"

namespace muster {

namespace {

// The other end, straight from the library.
struct TlsServer {
  explicit TlsServer(const TempTree& folder) {
    context = SSL_CTX_new(TLS_server_method());
    REQUIRE(SSL_CTX_use_certificate_chain_file(context, folder.path("cert.pem").c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context, folder.path("key.pem").c_str(),
                                        SSL_FILETYPE_PEM) == 1);
    ssl = SSL_new(context);
    in = BIO_new(BIO_s_mem());
    out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_accept_state(ssl);
  }
  ~TlsServer() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // Takes what the client sent and gives what is to be sent back.
  std::string exchange(const std::string& bytes) {
    BIO_write(in, bytes.data(), static_cast<int>(bytes.size()));
    char piece[4096];
    int got;
    while ((got = SSL_read(ssl, piece, sizeof piece)) > 0)
      received.append(piece, static_cast<size_t>(got));
    std::string reply;
    while ((got = BIO_read(out, piece, sizeof piece)) > 0)
      reply.append(piece, static_cast<size_t>(got));
    return reply;
  }

  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  BIO* in = nullptr;
  BIO* out = nullptr;
  std::string received;
};

struct TlsTest {
  TempTree folder;

  TlsTest() {
    // Self-signed, so that the certificate is its own authority.
    const std::string command =
        "cd " + folder.root() +
        " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj /CN=node-a -addext 'subjectAltName=DNS:node-a,IP:10.0.0.1,IP:::1'"
        " -keyout key.pem -out cert.pem >/dev/null 2>&1";
    REQUIRE(std::system(command.c_str()) == 0);
  }

  std::unique_ptr<TlsSession> client(const std::string& host) {
    auto context = TlsContext::create({folder.path("cert.pem"), "", ""});
    REQUIRE(context.has_value());
    auto session = TlsSession::client(*context, host);
    REQUIRE(session.has_value());
    return std::move(*session);
  }
};

// Carries bytes to and fro until both are quiet; `step` at a time towards the client.
Result<std::string> talk(TlsSession& client, TlsServer& server, size_t step = 4096) {
  std::string plain;
  for (std::string bytes = client.take_output(), reply = server.exchange(bytes); !reply.empty();
       reply = server.exchange(client.take_output())) {
    for (size_t at = 0; at < reply.size(); at += step) {
      Result<std::string> more = client.receive(reply.substr(at, step));
      if (!more) return more;
      plain += *more;
    }
  }
  return plain;
}

std::string trouble_with(TlsTest& test, const std::string& host) {
  TlsServer server(test.folder);
  auto client = test.client(host);
  auto result = talk(*client, server);
  CHECK_FALSE(client->established());
  return result ? "none" : result.error().message;
}

}  // namespace

TEST_CASE_FIXTURE(TlsTest, "text goes both ways through a handshake cut into single bytes") {
  TlsServer server(folder);
  auto client = this->client("node-a");
  client->send("held back until then");
  REQUIRE(talk(*client, server, 1).has_value());
  CHECK(client->established());
  CHECK(server.received == "held back until then");
  const std::string large(100'000, 'x');
  REQUIRE(SSL_write(server.ssl, large.data(), static_cast<int>(large.size())) == 100'000);
  auto plain = talk(*client, server, 1000);
  REQUIRE(plain.has_value());
  CHECK(*plain == large);
  client->send(large);
  CHECK(talk(*client, server).has_value());
  CHECK(server.received.size() == 20 + large.size());
  CHECK_FALSE(client->ended());
  SSL_shutdown(server.ssl);
  CHECK(talk(*client, server).has_value());
  CHECK(client->ended());
}

TEST_CASE_FIXTURE(TlsTest, "a certificate is good for the names and addresses in it") {
  for (const char* host : {"node-a", "10.0.0.1", "::1"}) {
    TlsServer server(folder);
    auto client = this->client(host);
    CHECK(talk(*client, server).has_value());
    CHECK(client->established());
  }
  CHECK(trouble_with(*this, "node-b") == "TLS: hostname mismatch");
  CHECK(trouble_with(*this, "10.0.0.2") == "TLS: IP address mismatch");
}

TEST_CASE_FIXTURE(TlsTest, "an unknown authority is refused, and the server told") {
  TlsServer server(folder);
  auto context = TlsContext::create({});
  REQUIRE(context.has_value());
  auto session = TlsSession::client(*context, "node-a");
  REQUIRE(session.has_value());
  auto result = talk(**session, server);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().message == "TLS: self-signed certificate");
  CHECK_FALSE((*session)->take_output().empty());
}

TEST_CASE_FIXTURE(TlsTest, "what is not TLS is an error") {
  auto client = this->client("node-a");
  CHECK_FALSE(client->receive("HTTP/1.1 400 Bad Request\r\n\r\n").has_value());
  TlsServer server(folder);
  auto later = this->client("node-a");
  REQUIRE(talk(*later, server).has_value());
  CHECK_FALSE(later->receive("garbage within the connection").has_value());
}

TEST_CASE_FIXTURE(TlsTest, "files that are no certificates are named") {
  const std::string text = folder.file("text", "no certificate");
  auto message = [](const TlsSettings& settings) {
    auto context = TlsContext::create(settings);
    return context ? "none" : context.error().message;
  };
  CHECK(message({text, "", ""}).starts_with("authorities in " + text + ": "));
  CHECK(message({"", text, ""}).starts_with("certificate in " + text + ": "));
  CHECK(message({"", folder.path("cert.pem"), text}).starts_with("private key in " + text + ": "));
  CHECK(message({"", folder.path("cert.pem"), ""})
            .starts_with("private key in " + folder.path("cert.pem") + ": "));
  CHECK(message({folder.path("none"), "", ""}) ==
        "authorities in " + folder.path("none") + ": No such file or directory");
}

}  // namespace muster
