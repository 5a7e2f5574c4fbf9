// SPDX-License-Identifier: Apache-2.0
#include "loop/http_answer.h"

#include <algorithm>
#include <array>
#include <ctime>

namespace muster {

namespace {

struct Reason {
  int status;
  std::string_view text;
};
constexpr std::array<Reason, 29> kReasons = {{
    {100, "Continue"},
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
}};

// RFC 9110's form, whatever the locale.
std::string date_text(int64_t unix_time) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = static_cast<std::time_t>(unix_time);
  std::tm tm{};
  gmtime_r(&seconds, &tm);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(tm.tm_wday)], tm.tm_mday,
                kMonths[static_cast<size_t>(tm.tm_mon)], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                tm.tm_sec);
  return text.data();
}

}  // namespace

std::string_view http_reason(int status) {
  for (const Reason& reason : kReasons)
    if (reason.status == status) return reason.text;
  return {};
}

bool http_has_no_body(int status) {
  return status / 100 == 1 || status == 204 || status == 304;
}

std::string http_head_text(const HttpAnswerHead& head) {
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " ";
  text += http_reason(head.status);
  text += "\r\nDate: " + date_text(head.unix_time) + "\r\n";
  for (const auto& [name, value] : head.headers) {
    text += name + ": ";
    // What a client sent may come back in a value; it must not begin a header of its own.
    std::transform(value.begin(), value.end(), std::back_inserter(text), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    });
    text += "\r\n";
  }
  if (!head.keeps_alive) {
    text += "Connection: close\r\n";
  } else if (head.http_1_0) {
    text += "Connection: keep-alive\r\n";
  }
  if (!http_has_no_body(head.status)) {
    if (head.length >= 0) {
      text += "Content-Length: " + std::to_string(head.length) + "\r\n";
    } else if (!head.http_1_0) {
      text += "Transfer-Encoding: chunked\r\n";
    }
  }
  return text + "\r\n";
}

std::string http_error_body(int status, std::string_view message) {
  std::string text = R"({"error": {"status": )" + std::to_string(status) + R"(, "message": ")";
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < 0x20) continue;
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"}}\n";
}

}  // namespace muster
