// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "loop/check.h"
#include "supervisor/rendezvous/base64.h"
#include "supervisor/rendezvous/etcd_answers.h"
#include "supervisor/rendezvous/office_holder.h"

// The first byte chooses the status of an answer whose body is the rest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr int kStatuses[] = {200, 201, 401, 404, 412, 500};
  muster::HttpResponse answer;
  answer.status = kStatuses[data[0] % std::size(kStatuses)];
  answer.headers = {{"x-etcd-index", "7"}};
  answer.body = rest;
  if (auto view = muster::v2_view(answer)) MUST(view->index >= 0 || answer.status == 404);
  (void)muster::v2_done(answer);
  if (auto view = muster::v3_view(answer)) MUST(view->revision != 0);
  if (auto lease = muster::v3_lease(answer)) MUST(lease->id != 0 && lease->seconds > 0);
  if (auto lease = muster::v3_kept_lease(answer)) MUST(lease->id != 0);
  (void)muster::v3_done(answer);
  (void)muster::v3_changed(rest);
  if (auto bytes = muster::base64_decode(rest)) MUST(muster::base64_encode(*bytes) == rest);
  MUST(muster::base64_decode(muster::base64_encode(rest)) == rest);
  if (auto holder = muster::parse_holder(rest)) {
    MUST(!holder->addresses.empty() && holder->port > 0);
    MUST(muster::parse_holder(muster::holder_text(*holder)).has_value() ||
         muster::holder_text(*holder).size() > muster::kMaxHolderText);
  }
  return 0;
}
