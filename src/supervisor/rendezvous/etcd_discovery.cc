// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/etcd_discovery.h"

#include <algorithm>
#include <cerrno>

#include "loop/http_client.h"
#include "loop/http_target.h"
#include "loop/interfaces.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/etcd_office.h"
#include "supervisor/rendezvous/etcd_v2.h"
#include "supervisor/rendezvous/etcd_v3.h"
#include "supervisor/rendezvous/office_holder.h"

namespace muster {

namespace {

// One request to etcd takes a few milliseconds; a member that has no leader answers after seconds.
constexpr Milliseconds kMaxRequest{5'000};
// Between a failed request and the next.
constexpr Milliseconds kRetry{500};
// A watch that has gone dead unnoticed, behind a firewall that forgets, costs this at most.
constexpr Milliseconds kLookAgain{15'000};
// A holder that did not answer is tried again after this; its silence may have been a passing
// one, and while its lease goes on nobody else can be elected.
constexpr Milliseconds kTryHolderAgain{2'000};
constexpr Milliseconds kMinLease{5'000};
constexpr Milliseconds kResignWithin{1'000};

std::string seconds_text(Milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

// The first key of conf that is set; torchrun's two etcd backends call the same thing differently.
std::string value_of(const std::map<std::string, std::string>& conf,
                     std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (auto found = conf.find(key); found != conf.end()) return found->second;
  return "";
}

// Where peers reach this machine: its address on the connection to etcd. If etcd is on this very
// machine, that says nothing, so all addresses are given and loopback last.
std::vector<std::string> own_addresses(const std::string& local_addr, const std::string& to_etcd) {
  if (SocketAddress::parse(local_addr, 0)) return {local_addr};
  auto seen = SocketAddress::parse(to_etcd, 0);
  if (seen && !seen->is_loopback()) return {to_etcd};
  std::vector<std::string> addresses;
  for (const SocketAddress& address : reachable_addresses())
    if (!address.is_loopback() && addresses.size() + 1 < kMaxHolderAddresses)
      addresses.push_back(address.host());
  addresses.push_back(seen ? to_etcd : "127.0.0.1");
  return addresses;
}

}  // namespace

//   find() -> looking -vacant-> campaigning -won-> holding -lease lost-> idle
//                     -held by another-> idle (found), or, if that one was found before and is of
//                      no use, waiting: until the key changes, then looking again
struct EtcdDiscovery::Impl {
  enum class State { kIdle, kLooking, kWaiting, kCampaigning, kHolding, kResigning };

  Impl(Loop& with_loop, Settings with_settings, Callbacks with_callbacks)
      : loop(with_loop),
        settings(std::move(with_settings)),
        callbacks(std::move(with_callbacks)),
        key(key_for(settings)),
        lease(lease_for(settings.keep_alive_time)),
        margin(margin_of(lease)) {
    const bool v6 = settings.endpoint_host.find(':') != std::string::npos;
    where = "etcd at " + (v6 ? "[" + settings.endpoint_host + "]" : settings.endpoint_host) + ":" +
            std::to_string(settings.endpoint_port);
  }

  Milliseconds request_deadline() const { return std::min(settings.read_timeout, kMaxRequest); }

  // Calls out, so it comes last, as each of these; whoever is called may drop us.
  void say(const std::string& step) {
    if (step == said) return;
    said = step;
    auto on_step = callbacks.on_step;
    on_step(step);
  }

  void fail(const Error& error) {
    rest();
    auto on_failed = callbacks.on_failed;
    on_failed(error);
  }

  void found(Found what) {
    auto on_found = callbacks.on_found;
    on_found(std::move(what));
  }

  void depose(const std::string& why) {
    rest();
    said.clear();
    auto on_deposed = callbacks.on_deposed;
    on_deposed(why);
  }

  void after(Milliseconds delay, void (Impl::*what)()) {
    timer = Timer::start(loop, delay, [this, what] {
      timer.reset();
      (this->*what)();
    });
  }

  void rest() {
    state = State::kIdle;
    timer.reset();
    deposition.reset();
    office->stop();
  }

  void look() {
    state = State::kLooking;
    timer.reset();
    office->unwatch();
    office->look([this](const Result<OfficeView>& view) {
      if (!view) return on_trouble(view.error());
      on_view(*view);
    });
  }

  // A request has failed: says so, and tries again unless that is of no use.
  void on_trouble(const Error& error) {
    const std::string message = where + ": " + error.message;
    store.reset();
    if (error.code == ENOTSUP || error.code == EACCES) return fail(Error{error.code, message});
    state = State::kWaiting;
    office->unwatch();
    after(kRetry, &Impl::look);
    say(message);
  }

  void on_view(const OfficeView& view) {
    if (view.value.empty()) return campaign();
    if (view.value == own_value) return hold_if_ours();
    std::optional<OfficeHolder> holder = parse_holder(view.value);
    if (!holder || holder->run_id != settings.run_id) {
      wait(view);
      return say(where + ": " + key + " holds something else than a coordinator of run '" +
                 settings.run_id + "': waiting for it to go");
    }
    if (holder->agent_id == settings.agent_id) return clear(view.value);
    if (view.value != offered || try_again) return offer(view.value, *holder);
    wait(view);
    say("the coordinator on " + holder->host + " (" + holder->addresses.front() + ":" +
        std::to_string(holder->port) + ") was lost; waiting for its lease in etcd to end, " +
        seconds_text(lease) + " after its last sign of life");
  }

  void offer(const std::string& value, const OfficeHolder& holder) {
    if (value != offered) said.clear();
    offered = value;
    try_again = false;
    store.reset();
    rest();
    Found client;
    client.addresses = holder.addresses;
    client.port = holder.port;
    client.host = holder.addresses.front();
    found(std::move(client));
  }

  // Until the key changes.
  void wait(const OfficeView& view) {
    state = State::kWaiting;
    store.reset();
    after(view.value == offered ? kTryHolderAgain : kLookAgain, &Impl::look_and_try);
    const Clock::time_point began = Clock::now();
    office->watch(view, [this, began](const Result<void>& changed) {
      office->unwatch();
      if (!changed) return on_trouble(changed.error());
      // A watch that ends at once, again and again, must not make us spin.
      if (Clock::now() - began < kRetry) return after(kRetry, &Impl::look);
      look();
    });
  }

  void look_and_try() {
    try_again = true;
    look();
  }

  // What an earlier campaign of this very node left behind.
  void clear(const std::string& value) {
    office->give_up(value, request_deadline(), [this](const Result<bool>& gone) {
      if (!gone) return on_trouble(gone.error());
      look();
    });
  }

  void campaign() {
    state = State::kCampaigning;
    if (!store) {
      Result<std::unique_ptr<StoreServer>> listening = settings.listen("::", 0);
      if (!listening) return fail(listening.error());
      store = std::move(*listening);
    }
    OfficeHolder self;
    self.run_id = settings.run_id;
    self.agent_id = settings.agent_id;
    self.host = settings.host_name;
    self.addresses = own_addresses(settings.local_addr, office->local_address());
    self.port = store->port();
    self.term = ++term;
    addresses = self.addresses;
    own_value = holder_text(self);
    office->take(own_value, lease, [this](const Result<bool>& taken) {
      if (!taken) return on_trouble(taken.error());
      if (!*taken) return look();
      begin_to_hold();
    });
  }

  // The answer to our campaign was lost, so it may have been won.
  void hold_if_ours() {
    if (!store) return clear(own_value);
    office->renew(request_deadline(), [this](const Result<bool>& ours) {
      if (!ours) return on_trouble(ours.error());
      if (!*ours) return clear(own_value);
      begin_to_hold();
    });
  }

  Milliseconds time_left() const {
    return std::chrono::duration_cast<Milliseconds>(office->valid_until() - margin - Clock::now());
  }

  void begin_to_hold() {
    if (time_left() <= Milliseconds(0)) return look();  // won too long ago
    state = State::kHolding;
    offered.clear();
    said.clear();
    watch_deposition();
    after(lease / 5, &Impl::renew);
    Found host;
    host.store = std::move(store);
    host.addresses = addresses;
    host.port = host.store->port();
    host.host = addresses.front();
    found(std::move(host));
  }

  void watch_deposition() {
    deposition = Timer::start(loop, std::max(time_left(), Milliseconds(0)), [this] {
      depose("the lease in etcd could not be renewed for " + seconds_text(lease - margin) +
             (last_trouble.empty() ? "" : ": " + last_trouble));
    });
  }

  void renew() {
    office->renew(lease / 3, [this](const Result<bool>& renewed) { on_renewed(renewed); });
  }

  void on_renewed(const Result<bool>& renewed) {
    if (renewed && !*renewed)
      return depose("the office in etcd (" + key + ") is not ours any more");
    if (time_left() <= Milliseconds(0)) return watch_deposition();
    after(renewed ? lease / 5 : kRetry / 2, &Impl::renew);
    if (renewed) {
      watch_deposition();
      last_trouble.clear();
      if (!said.empty()) say(where + ": answers again");
      return;
    }
    last_trouble = where + ": " + renewed.error().message;
    say(last_trouble + "; without it this node cannot stay the coordinator for longer than " +
        seconds_text(lease));
  }

  void find() {
    const bool held = state == State::kHolding;
    try_again = false;
    rest();
    store.reset();
    if (held) return clear(own_value);
    look();
  }

  bool resign(const std::function<void()>& on_resigned) {
    if (state != State::kHolding) return false;
    rest();
    state = State::kResigning;
    office->give_up(own_value, kResignWithin,
                    [on_resigned](const Result<bool>&) { on_resigned(); });
    return true;
  }

  Loop& loop;
  Settings settings;
  Callbacks callbacks;
  std::string key;
  std::string where;  // "etcd at HOST:PORT"
  Milliseconds lease;
  Milliseconds margin;
  State state = State::kIdle;
  std::unique_ptr<EtcdOffice> office;
  std::unique_ptr<StoreServer> store;  // while we campaign
  std::vector<std::string> addresses;  // ours, as published
  std::string own_value;               // of our last campaign
  int term = 0;
  std::string offered;     // the holder that was found last
  bool try_again = false;  // offer it once more
  std::string said;
  std::string last_trouble;  // while we hold the office
  Owned<Timer> timer;
  Owned<Timer> deposition;
};

Milliseconds EtcdDiscovery::lease_for(Milliseconds keep_alive_time) {
  return std::max(kMinLease,
                  std::chrono::ceil<std::chrono::seconds>(keep_alive_time) + Milliseconds(2'000));
}

Milliseconds EtcdDiscovery::margin_of(Milliseconds lease) {
  return lease / 10;
}

std::string EtcdDiscovery::key_for(const Settings& settings) {
  std::string prefix = value_of(settings.etcd, {"etcd_prefix"});
  if (prefix.empty())
    prefix = settings.api == Meeting::kEtcdV3 ? "/torch/elastic/rendezvous" : "/torchelastic/p2p";
  while (prefix.ends_with('/'))
    prefix.pop_back();
  if (!prefix.starts_with('/')) prefix.insert(0, "/");
  return prefix + "/muster/coordinator/" + percent_encode(settings.run_id);
}

Result<std::unique_ptr<EtcdDiscovery>> EtcdDiscovery::create(Loop& loop, Settings settings,
                                                             Callbacks callbacks) {
  HttpClient::Server server;
  server.host = settings.endpoint_host;
  server.port = settings.endpoint_port;
  const std::string protocol = value_of(settings.etcd, {"protocol"});
  if (protocol == "https") {
    TlsSettings tls;
    tls.ca_file = value_of(settings.etcd, {"cacert", "ca_cert"});
    tls.cert_file = value_of(settings.etcd, {"cert", "ssl_cert"});
    tls.key_file = value_of(settings.etcd, {"key", "ssl_cert_key"});
    auto context = TlsContext::create(tls);
    if (!context) return Error{context.error().code, "etcd: " + context.error().message};
    server.tls = *context;
  } else if (!protocol.empty() && protocol != "http") {
    return Error{EINVAL, "etcd: protocol '" + protocol + "': neither http nor https"};
  }
  auto impl = std::make_unique<Impl>(loop, std::move(settings), std::move(callbacks));
  server.connect_timeout = impl->request_deadline();
  auto client = std::make_unique<HttpClient>(loop, std::move(server));
  impl->office = impl->settings.api == Meeting::kEtcdV3
                     ? etcd_v3_office(std::move(client), impl->key, impl->request_deadline())
                     : etcd_v2_office(std::move(client), impl->key, impl->request_deadline());
  return std::unique_ptr<EtcdDiscovery>(new EtcdDiscovery(std::move(impl)));
}

EtcdDiscovery::EtcdDiscovery(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EtcdDiscovery::~EtcdDiscovery() = default;

void EtcdDiscovery::find() {
  impl_->find();
}

bool EtcdDiscovery::resign(const std::function<void()>& on_resigned) {
  return impl_->resign(on_resigned);
}

}  // namespace muster
