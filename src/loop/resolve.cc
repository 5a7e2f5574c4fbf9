// SPDX-License-Identifier: Apache-2.0
#include "loop/resolve.h"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <utility>

#include "loop/interfaces.h"
#include "loop/pool.h"

namespace muster {

namespace {

using Addresses = std::vector<SocketAddress>;

// Whoever asked; without a function once its handle is dropped or it has been told.
struct Asker {
  std::function<void(Result<Addresses>)> on_result;

  void tell(const Result<Addresses>& result) {
    // The function may drop the handle, so it must not live in what the handle clears.
    auto tell_it = std::exchange(on_result, nullptr);
    if (tell_it) tell_it(result);
  }
};

class PoolLookup final : public Lookup {
 public:
  explicit PoolLookup(std::shared_ptr<Asker> asker) : asker_(std::move(asker)) {}

  void close() override {
    asker_->on_result = nullptr;
    delete this;
  }

 private:
  const std::shared_ptr<Asker> asker_;
};

Error explain(const std::string& host, int status, int code) {
  const std::string step = "resolve " + host + ": ";
  switch (status) {
    case EAI_NONAME:
    case EAI_NODATA:
      return {ENOENT, step + "name not known"};
    case EAI_AGAIN:
      return {EAGAIN, step + "no answer from the name server"};
    case EAI_FAIL:
      return {EIO, step + "the name server failed"};
    case EAI_SYSTEM:
      return errno_error(code, "resolve " + host);
    default:
      return {EIO, step + gai_strerror(status)};
  }
}

int ask(const std::string& host, int flags, Addresses& addresses) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) return status;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address = SocketAddress::from(entry->ai_addr);
    // A hosts file may list an address twice.
    if (address.family() != AF_UNSPEC && std::ranges::count(addresses, address) == 0)
      addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses.empty() ? EAI_NODATA : 0;
}

// A machine without any IPv6 address cannot even fail well at one: leave them out if others remain.
void drop_unusable(Addresses& addresses) {
  auto is_v6 = [](const SocketAddress& address) { return address.family() == AF_INET6; };
  const Addresses ours = local_addresses();
  if (std::ranges::any_of(ours, is_v6) || std::ranges::all_of(addresses, is_v6)) return;
  std::erase_if(addresses, is_v6);
}

Result<Addresses> look_up(const std::string& host) {
  Addresses addresses;
  // Spares the name server the question for IPv6 where no interface has it. But glibc then hides
  // an entry of the hosts file in the other family, so ask openly before calling a name unknown.
  int status = ask(host, AI_ADDRCONFIG, addresses);
  if (status == EAI_NONAME || status == EAI_NODATA) status = ask(host, 0, addresses);
  if (status != 0) return explain(host, status, errno);
  drop_unusable(addresses);
  return addresses;
}

}  // namespace

// The names that wait for the pool, the first of them in it if `busy`.
struct LookupQueue : std::enable_shared_from_this<LookupQueue> {
  struct Name {
    std::string host;
    std::vector<std::shared_ptr<Asker>> askers;
  };

  explicit LookupQueue(Loop& the_loop) : loop(the_loop) {}

  void add(const std::string& host, std::shared_ptr<Asker> asker) {
    auto same = std::ranges::find(names, host, &Name::host);
    if (same != names.end()) {
      same->askers.push_back(std::move(asker));
      return;
    }
    names.push_back({host, {std::move(asker)}});
    if (!busy) next();
  }

  void next() {
    auto wanted = [](const std::shared_ptr<Asker>& asker) { return asker->on_result != nullptr; };
    while (!names.empty() && std::ranges::none_of(names.front().askers, wanted))
      names.pop_front();
    if (names.empty()) return;
    busy = true;
    auto answer = std::make_shared<Result<Addresses>>(Error{});
    run_in_pool(
        loop, [answer, host = names.front().host] { *answer = look_up(host); },
        [self = shared_from_this(), answer] { self->answered(*answer); });
  }

  void answered(const Result<Addresses>& answer) {
    const Name name = std::move(names.front());
    names.pop_front();
    busy = false;
    next();
    for (const std::shared_ptr<Asker>& asker : name.askers)
      asker->tell(answer);
  }

  Loop& loop;
  std::deque<Name> names;
  bool busy = false;
};

Owned<Lookup> resolve(Loop& loop, const std::string& host,
                      std::function<void(Result<Addresses>)> on_result) {
  auto asker = std::make_shared<Asker>();
  asker->on_result = std::move(on_result);
  if (Result<SocketAddress> literal = SocketAddress::parse(host, 0)) {
    loop.post([asker, address = *literal] { asker->tell(Addresses{address}); });
  } else if (host.empty() || host.find(':') != std::string::npos) {
    // No name has a colon. A scoped address is refused as long as its interface is not there.
    const bool scoped = host.find('%') != std::string::npos;
    Error error{ENOENT, "resolve '" + host + "': " +
                            (scoped ? "no such address or interface" : "no name and no address")};
    loop.post([asker, error] { asker->tell(error); });
  } else {
    if (!loop.lookups()) loop.lookups() = std::make_shared<LookupQueue>(loop);
    loop.lookups()->add(host, asker);
  }
  return Owned<Lookup>(new PoolLookup(std::move(asker)));
}

}  // namespace muster
