// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/peer_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

namespace muster {

namespace {

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

// An IPv4 address in its first word, IPv6 in all four, in network order as everywhere here.
void set_end(const SocketAddress& address, __be16& port, __be32 (&words)[4]) {
  port = htons(static_cast<uint16_t>(address.port()));
  if (address.family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.raw());
    std::memcpy(&words[0], &v4->sin_addr, sizeof(v4->sin_addr));
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.raw());
    std::memcpy(&words[0], &v6->sin6_addr, sizeof(v6->sin6_addr));
  }
}

Request lookup_of(const SocketAddress& peer, const SocketAddress& local) {
  Request request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;  // not NLM_F_DUMP: one socket, found by its hash
  request.body.sdiag_family = static_cast<uint8_t>(peer.family());
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0U;
  // The other end's own socket: its source is our peer.
  set_end(peer, request.body.id.idiag_sport, request.body.id.idiag_src);
  set_end(local, request.body.id.idiag_dport, request.body.id.idiag_dst);
  request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return request;
}

// A socket that no process has any more is told as root's. It has no inode.
std::optional<uid_t> user_in(const char* answer, size_t size) {
  nlmsghdr header;
  inet_diag_msg body;
  if (size < NLMSG_HDRLEN + sizeof(body)) return std::nullopt;
  std::memcpy(&header, answer, sizeof(header));
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&body, answer + NLMSG_HDRLEN, sizeof(body));
  if (body.idiag_inode == 0) return std::nullopt;
  return body.idiag_uid;
}

}  // namespace

std::optional<uid_t> PeerUser::ask(const SocketAddress& peer, const SocketAddress& local) {
  if (!peer.is_loopback() && !peer.same_host(local)) return std::nullopt;
  if (peer.family() != local.family()) return std::nullopt;
  if (!socket_) {
    socket_ =
        UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
    if (!socket_) return std::nullopt;
  }
  const Request request = lookup_of(peer, local);
  // The kernel answers within the call that asks.
  alignas(nlmsghdr) char answer[1024];
  ssize_t size = -1;
  if (::send(socket_.get(), &request, sizeof(request), 0) == sizeof(request)) {
    size = ::recv(socket_.get(), answer, sizeof(answer), 0);
  }
  // An answer that is late must not be taken for that to the next question.
  if (size < 0) {
    socket_.reset();
    return std::nullopt;
  }
  return user_in(answer, static_cast<size_t>(size));
}

}  // namespace muster
