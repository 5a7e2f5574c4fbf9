// SPDX-License-Identifier: Apache-2.0
#include "loop/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>

#include "loop/socket_address.h"

namespace muster {

namespace {

struct Freer {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// The oldest error of this thread's queue, which is the nearest to the cause; empties the queue.
std::string ssl_error_text() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  if (reason != nullptr) return reason;
  return code != 0 && ERR_SYSTEM_ERROR(code) ? std::strerror(ERR_GET_REASON(code))
                                             : "unknown TLS error";
}

}  // namespace

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, Freer> context;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::create(const TlsSettings& settings) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, Freer> context(SSL_CTX_new(TLS_client_method()));
  if (!context) return Error{0, "TLS: " + ssl_error_text()};
  SSL_CTX* raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  const std::string& key = settings.key_file.empty() ? settings.cert_file : settings.key_file;
  if (settings.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(raw);
  } else if (SSL_CTX_load_verify_file(raw, settings.ca_file.c_str()) != 1) {
    return Error{0, "authorities in " + settings.ca_file + ": " + ssl_error_text()};
  }
  if (!settings.cert_file.empty()) {
    if (SSL_CTX_use_certificate_chain_file(raw, settings.cert_file.c_str()) != 1)
      return Error{0, "certificate in " + settings.cert_file + ": " + ssl_error_text()};
    if (SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1)
      return Error{0, "private key in " + key + ": " + ssl_error_text()};
  }
  ERR_clear_error();
  auto impl = std::make_unique<Impl>();
  impl->context = std::move(context);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(impl)));
}

struct TlsSession::Impl {
  std::shared_ptr<const TlsContext> context;
  std::unique_ptr<SSL, Freer> ssl;
  BIO* from_peer = nullptr;  // both are owned by ssl
  BIO* to_peer = nullptr;
  std::string kept_back;
  bool ended = false;

  Result<void> shake_hands() {
    if (SSL_is_init_finished(ssl.get())) return {};
    ERR_clear_error();
    int status = SSL_do_handshake(ssl.get());
    if (status == 1) {
      write(std::exchange(kept_back, {}));
      return {};
    }
    if (SSL_get_error(ssl.get(), status) == SSL_ERROR_WANT_READ) return {};
    long verdict = SSL_get_verify_result(ssl.get());
    std::string why = ssl_error_text();
    if (verdict != X509_V_OK) why = X509_verify_cert_error_string(verdict);
    return Error{EPROTO, "TLS: " + why};
  }

  void write(std::string_view plain) {
    // A memory BIO takes everything, so nothing is ever left over.
    if (!plain.empty()) SSL_write(ssl.get(), plain.data(), static_cast<int>(plain.size()));
  }
};

TlsSession::TlsSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsSession::~TlsSession() = default;

Result<std::unique_ptr<TlsSession>> TlsSession::client(std::shared_ptr<const TlsContext> context,
                                                       const std::string& host) {
  ERR_clear_error();
  auto impl = std::make_unique<Impl>();
  impl->context = std::move(context);
  impl->ssl.reset(SSL_new(impl->context->impl_->context.get()));
  if (!impl->ssl) return Error{0, "TLS: " + ssl_error_text()};
  SSL* ssl = impl->ssl.get();
  impl->from_peer = BIO_new(BIO_s_mem());
  impl->to_peer = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, impl->from_peer, impl->to_peer);
  SSL_set_connect_state(ssl);
  // Names go into the greeting, so that a server with several certificates chooses; addresses are
  // not allowed there.
  const bool is_address = SocketAddress::parse(host, 0).has_value();
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl);
  const std::string bare = host.substr(0, host.find('%'));
  bool set = is_address ? X509_VERIFY_PARAM_set1_ip_asc(verify, bare.c_str()) == 1
                        : X509_VERIFY_PARAM_set1_host(verify, host.data(), host.size()) == 1 &&
                              SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  if (!set) return Error{0, "TLS: '" + host + "' is no host name: " + ssl_error_text()};
  if (Result<void> begun = impl->shake_hands(); !begun) return begun.error();
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(impl)));
}

Result<std::string> TlsSession::receive(std::string_view bytes) {
  BIO_write(impl_->from_peer, bytes.data(), static_cast<int>(bytes.size()));
  if (Result<void> shaken = impl_->shake_hands(); !shaken) return shaken.error();
  std::string plain;
  if (!established()) return plain;
  char piece[16384];  // the largest TLS record
  while (true) {
    ERR_clear_error();
    int got = SSL_read(impl_->ssl.get(), piece, sizeof piece);
    if (got > 0) {
      plain.append(piece, static_cast<size_t>(got));
      continue;
    }
    int why = SSL_get_error(impl_->ssl.get(), got);
    if (why == SSL_ERROR_WANT_READ) return plain;
    impl_->ended = why == SSL_ERROR_ZERO_RETURN;
    if (impl_->ended) return plain;
    return Error{EPROTO, "TLS: " + ssl_error_text()};
  }
}

void TlsSession::send(std::string_view plain) {
  if (established()) {
    impl_->write(plain);
  } else {
    impl_->kept_back += plain;
  }
}

std::string TlsSession::take_output() {
  char* bytes = nullptr;
  long size = BIO_get_mem_data(impl_->to_peer, &bytes);
  std::string output(bytes, static_cast<size_t>(std::max(size, 0L)));
  BIO_reset(impl_->to_peer);
  return output;
}

bool TlsSession::established() const {
  return SSL_is_init_finished(impl_->ssl.get()) == 1;
}

bool TlsSession::ended() const {
  return impl_->ended;
}

}  // namespace muster
