// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "loop/http_server.h"

namespace muster {

// Who may do what over HTTP. Pure: bytes of a request in, a decision out.
//
// Three strangers are kept out. Another machine or user does not know the token. A page of another
// site, open in the browser of somebody who does, is told by Origin and Sec-Fetch-Site, and its
// requests do not carry the cookie. A page whose name was made to point here after it was loaded
// (DNS rebinding) calls us by its own name, so Host has to be ours.

struct AccessRules {
  std::string token;
  std::string host_name;  // of this machine, "" if unknown
  int port = 0;           // listened on; names the cookie, since browsers keep one jar for a host
};

struct AccessDecision {
  enum class Kind {
    kAllow,
    kRedirect,  // 303 to `location`, with `cookie`
    kRefresh,   // a page that goes on to `location` by itself, with `cookie`
    kRefuse,
    kAskAgain,  // the same as a page that asks once more by itself
  };
  Kind kind = Kind::kRefuse;
  int status = 0;
  std::string message;
  std::string hint;
  std::string location;
  std::string cookie;  // Set-Cookie, "" for none
};

// `same_user` is asked only if it matters: whether the kernel says that the client is a process of
// this machine and of our own user.
AccessDecision decide_access(const AccessRules& rules, const HttpServerRequest& request,
                             const std::function<bool()>& same_user);

// The script of that page. No token is needed for it.
inline constexpr char kAskAgainPath[] = "/ask_again.js";

// Equal or not in a time that tells nothing of where they differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace muster
