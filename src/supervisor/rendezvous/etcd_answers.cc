// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/etcd_answers.h"

#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "supervisor/rendezvous/base64.h"

namespace muster {

namespace {

using Json = nlohmann::json;

// Of an error text that is not ours.
constexpr size_t kMaxQuoted = 200;

// Etcd's errors of the v2 API.
constexpr int64_t kKeyNotFound = 100;
constexpr int64_t kCompareFailed = 101;
constexpr int64_t kKeyExists = 105;

Json parse(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

const Json& at(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  auto found = object.find(key);
  return found == object.end() ? none : *found;
}

// 64-bit numbers are texts in the JSON of v3, where 0 is left out.
std::optional<int64_t> number(const Json& value) {
  if (value.is_null()) return 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  int64_t result = 0;
  auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (trouble != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return result;
}

std::string safe_text(std::string_view text) {
  std::string safe;
  for (char c : text.substr(0, kMaxQuoted))
    safe += c >= ' ' && c <= '~' ? c : '?';
  return safe;
}

Error not_etcd() {
  return Error{EPROTO, "the answer is not etcd's"};
}

// An answer with an error status; `api` is how to get what is missing.
Error refusal(const HttpResponse& answer, const char* api) {
  const Json body = parse(answer.body);
  std::string said;
  for (const char* key : {"message", "error"})
    if (said.empty() && at(body, key).is_string())
      said = safe_text(at(body, key).get<std::string>());
  const std::string status = "status " + std::to_string(answer.status);
  if (answer.status == 401 || answer.status == 403)
    return Error{EACCES, "access denied" + (said.empty() ? "" : " (" + said + ")")};
  if (answer.status == 404 && !body.is_object()) return Error{ENOTSUP, api};
  return Error{EPROTO, said.empty() ? status : said + " (" + status + ")"};
}

Error v2_refusal(const HttpResponse& answer) {
  return refusal(answer,
                 "it has no v2 API: start it with --enable-v2, or use "
                 "--rdzv-backend etcd-v3");
}

Error v3_refusal(const HttpResponse& answer) {
  return refusal(answer,
                 "it has no v3 API in JSON: it needs etcd 3.4 or later with its gRPC "
                 "gateway enabled");
}

Result<V3Lease> lease(const Json& body) {
  auto id = number(at(body, "ID"));
  auto seconds = number(at(body, "TTL"));
  if (!id || *id == 0 || !seconds) return not_etcd();
  return V3Lease{*id, *seconds};
}

}  // namespace

Result<OfficeView> v2_view(const HttpResponse& answer) {
  const Json body = parse(answer.body);
  OfficeView view;
  if (answer.status == 404 && number(at(body, "errorCode")) == kKeyNotFound) {
    auto index = number(at(body, "index"));
    if (!index) return not_etcd();
    view.index = *index;
    return view;
  }
  if (answer.status != 200) return v2_refusal(answer);
  const Json& value = at(at(body, "node"), "value");
  auto index = number(Json(std::string(answer.header("x-etcd-index"))));
  if (!value.is_string() || !index) return not_etcd();
  view.value = value.get<std::string>();
  view.index = *index;
  return view;
}

Result<bool> v2_done(const HttpResponse& answer) {
  if (answer.status == 200 || answer.status == 201) {
    if (!at(parse(answer.body), "node").is_object()) return not_etcd();
    return true;
  }
  const int64_t code = number(at(parse(answer.body), "errorCode")).value_or(0);
  if (code == kKeyNotFound || code == kCompareFailed || code == kKeyExists) return false;
  return v2_refusal(answer);
}

Result<V3View> v3_view(const HttpResponse& answer) {
  if (answer.status != 200) return v3_refusal(answer);
  const Json body = parse(answer.body);
  auto revision = number(at(at(body, "header"), "revision"));
  if (!body.is_object() || !revision || *revision == 0) return not_etcd();
  V3View view;
  view.revision = *revision;
  const Json& entries = at(body, "kvs");
  if (entries.is_null()) return view;
  if (!entries.is_array() || entries.size() != 1) return not_etcd();
  const Json& value = at(entries[0], "value");
  auto lease_id = number(at(entries[0], "lease"));
  if (!value.is_string() || !lease_id) return not_etcd();
  auto bytes = base64_decode(value.get_ref<const std::string&>());
  if (!bytes) return not_etcd();
  view.entry = V3Entry{std::move(*bytes), *lease_id};
  return view;
}

Result<V3Lease> v3_lease(const HttpResponse& answer) {
  if (answer.status != 200) return v3_refusal(answer);
  Result<V3Lease> granted = lease(parse(answer.body));
  if (granted && granted->seconds <= 0) return not_etcd();
  return granted;
}

Result<V3Lease> v3_kept_lease(const HttpResponse& answer) {
  if (answer.status != 200) return v3_refusal(answer);
  return lease(at(parse(answer.body), "result"));
}

Result<bool> v3_done(const HttpResponse& answer) {
  if (answer.status != 200) return v3_refusal(answer);
  const Json body = parse(answer.body);
  if (!at(body, "header").is_object()) return not_etcd();
  const Json& succeeded = at(body, "succeeded");
  return succeeded.is_boolean() && succeeded.get<bool>();
}

Result<bool> v3_changed(std::string_view line) {
  const Json result = at(parse(line), "result");
  if (!result.is_object()) return not_etcd();
  const Json& events = at(result, "events");
  const Json& canceled = at(result, "canceled");
  return (events.is_array() && !events.empty()) || (canceled.is_boolean() && canceled.get<bool>());
}

}  // namespace muster
