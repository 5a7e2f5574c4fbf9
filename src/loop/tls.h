// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loop/result.h"

namespace muster {

// PEM files. Without `ca_file` the system's authorities are trusted; certificate and key are for
// servers that ask for them.
struct TlsSettings {
  std::string ca_file;
  std::string cert_file;
  std::string key_file;  // empty: it stands in cert_file
};

// What all connections to a server share: whom we trust and who we are. TLS 1.2 at least.
class TlsContext {
 public:
  // Reads the files, so it belongs before the loop runs.
  static Result<std::shared_ptr<const TlsContext>> create(const TlsSettings& settings);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The client's end of one TLS connection, between memory and memory: knows no socket. The peer must
// prove to be `host`, a name or an address.
class TlsSession {
 public:
  static Result<std::unique_ptr<TlsSession>> client(std::shared_ptr<const TlsContext> context,
                                                    const std::string& host);
  ~TlsSession();

  // Bytes from the peer; returns the plain text in them. An Error is final, and what take_output()
  // gives then tells the peer why.
  Result<std::string> receive(std::string_view bytes);

  // What is sent before the peer has proved itself is kept back until then.
  void send(std::string_view plain);

  // Bytes for the peer; to be asked after each other call, and once at the start.
  std::string take_output();

  bool established() const;

  // The peer has said that nothing more comes; an end without that may be a cut.
  bool ended() const;

 private:
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
