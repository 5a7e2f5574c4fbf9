// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "loop/loop.h"
#include "loop/result.h"

namespace muster {

// What the key held when etcd's counter of changes stood at `index`. An empty value: no key.
struct OfficeView {
  std::string value;
  int64_t index = 0;
};

// The office of a job's coordinator: one key in etcd that exists as long as somebody holds it under
// a lease. One implementation for each generation of etcd's API. Owned by EtcdDiscovery.
//
// All callbacks come once, from the loop. Of look, take, renew and give_up one is under way at a
// time: a new one drops the one before. An Error whose code is ENOTSUP or EACCES will not heal by
// trying again.
class EtcdOffice {
 public:
  using OnView = std::function<void(Result<OfficeView>)>;
  using OnAnswer = std::function<void(Result<bool>)>;
  virtual ~EtcdOffice() = default;

  virtual void look(OnView on_view) = 0;

  // Takes the vacant office for `lease`; false: it is not vacant. After an Error it may be ours all
  // the same, which a look shows by the value.
  virtual void take(const std::string& value, Milliseconds lease, OnAnswer on_answer) = 0;

  // Makes the lease of the last take begin anew; false: the office is not ours.
  virtual void renew(Milliseconds deadline, OnAnswer on_answer) = 0;

  // Until when nobody else can hold the office: the lease counted from before the request that last
  // began it was sent, so the server's own count ends later.
  virtual Clock::time_point valid_until() const = 0;

  // Makes the office vacant if it holds exactly `value`; false: it did not.
  virtual void give_up(const std::string& value, Milliseconds deadline, OnAnswer on_answer) = 0;

  // Tells of the first change after `view`, or that it cannot be watched any more. Besides the
  // others, until unwatch().
  virtual void watch(const OfficeView& view, std::function<void(Result<void>)> on_change) = 0;
  virtual void unwatch() = 0;

  // Drops whatever is under way.
  virtual void stop() = 0;

  // Our own address on the last connection to etcd.
  virtual std::string local_address() const = 0;
};

}  // namespace muster
