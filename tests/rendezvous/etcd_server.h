// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/temp_tree.h"
#include "loop/loop.h"

namespace muster {

// A real etcd of one member, on free ports of the loopback address and with its data in a folder of
// the test. Ended by its pid. Whether there is an etcd on this machine: EtcdServer::installed().
class EtcdServer {
 public:
  static bool installed();

  ~EtcdServer();

  // Starts it, also again after kill(), with the data and ports that it had, and waits until it
  // serves. `more` are further arguments.
  void start(Loop& loop, std::vector<std::string> more = {});
  void kill();
  void freeze();
  void thaw();

  int port() const { return client_port_; }
  const TempTree& folder() const { return folder_; }

  // A certificate authority, and a certificate of it for `name` ("IP:127.0.0.1",
  // "DNS:elsewhere"), in the test's folder: ca.pem, NAME.pem, NAME-key.pem.
  void make_authority() const;
  void make_certificate(const std::string& file, const std::string& name) const;

  // Serves https with `server` and asks for certificates of the authority.
  void start_tls(Loop& loop, const std::string& certificate);

 private:
  void spawn(const std::vector<std::string>& arguments);
  void wait_until_it_listens(Loop& loop, bool tls);

  TempTree folder_{TempTree::fast_base()};
  int client_port_ = 0;
  int peer_port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace muster
