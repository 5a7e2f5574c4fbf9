// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/etcd_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstdlib>

#include "loop/http_client.h"
#include "loop/tcp_listener.h"
#include "loop/timer.h"

namespace muster {

namespace {

int free_port(Loop& loop) {
  auto listener = TcpListener::listen(loop, "127.0.0.1", 0, {});
  REQUIRE(listener.has_value());
  return (*listener)->port();
}

std::string url(const char* scheme, int port) {
  return std::string(scheme) + "://127.0.0.1:" + std::to_string(port);
}

void run(const std::string& command) {
  INFO(command);
  REQUIRE(std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0);
}

}  // namespace

bool EtcdServer::installed() {
  return access("/usr/bin/etcd", X_OK) == 0;
}

EtcdServer::~EtcdServer() {
  kill();
}

void EtcdServer::start(Loop& loop, std::vector<std::string> more) {
  const bool tls = !more.empty() && more[0] == "--client-cert-auth";
  if (client_port_ == 0) {
    client_port_ = free_port(loop);
    peer_port_ = free_port(loop);
  }
  const std::string client = url(tls ? "https" : "http", client_port_);
  const std::string peer = url("http", peer_port_);
  std::vector<std::string> arguments = {"etcd",
                                        "--data-dir=" + folder_.path("data"),
                                        "--listen-client-urls=" + client,
                                        "--advertise-client-urls=" + client,
                                        "--listen-peer-urls=" + peer,
                                        "--initial-advertise-peer-urls=" + peer,
                                        "--initial-cluster=default=" + peer,
                                        "--heartbeat-interval=20",
                                        "--election-timeout=200"};
  if (more.empty()) more = {"--enable-v2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  spawn(arguments);
  wait_until_it_listens(loop, tls);
}

void EtcdServer::start_tls(Loop& loop, const std::string& certificate) {
  start(loop, {"--client-cert-auth", "--enable-v2", "--trusted-ca-file=" + folder_.path("ca.pem"),
               "--cert-file=" + folder_.path(certificate + ".pem"),
               "--key-file=" + folder_.path(certificate + "-key.pem")});
}

void EtcdServer::spawn(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string log = folder_.path("log");
  const pid_t parent = getpid();
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, 1);
  dup2(out, 2);
  execv("/usr/bin/etcd", argv.data());
  _exit(127);
}

void EtcdServer::wait_until_it_listens(Loop& loop, bool tls) {
  HttpClient client(loop, {.host = "127.0.0.1",
                           .port = client_port_,
                           .tls = nullptr,
                           .connect_timeout = Milliseconds(1000),
                           .limits = {}});
  bool serves = false;
  std::unique_ptr<HttpCall> call;
  Owned<Timer> again;
  std::function<void()> ask = [&] {
    HttpRequest request;
    request.target = "/health";
    call = client.send(request, [&](Result<HttpResponse> answer) {
      // A TLS server closes on plain HTTP, or complains in it; either way it is there.
      serves = answer ? tls || answer->status == 200 : tls && answer.error().code != ECONNREFUSED;
      if (!serves) again = Timer::start(loop, Milliseconds(20), ask);
    });
  };
  ask();
  INFO("etcd's log: ", folder_.path("log"));
  REQUIRE(loop.run_until([&] { return serves; }, Milliseconds(30'000)));
}

void EtcdServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void EtcdServer::freeze() {
  REQUIRE(::kill(pid_, SIGSTOP) == 0);
}

void EtcdServer::thaw() {
  REQUIRE(::kill(pid_, SIGCONT) == 0);
}

void EtcdServer::make_authority() const {
  run("cd " + folder_.root() +
      " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
      " -subj '/CN=test authority' -keyout ca-key.pem -out ca.pem");
}

void EtcdServer::make_certificate(const std::string& file, const std::string& name) const {
  folder_.file(file + ".ext", "subjectAltName=" + name + "\n");
  run("cd " + folder_.root() + " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1" +
      " -nodes -subj /CN=" + file + " -keyout " + file + "-key.pem -out " + file + ".csr && " +
      "openssl x509 -req -in " + file + ".csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial" +
      " -days 2 -extfile " + file + ".ext -out " + file + ".pem");
}

}  // namespace muster
