// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/rendezvous_options.h"

#include <doctest/doctest.h>

namespace muster {
namespace {

std::string problem(const std::string& backend, const std::string& endpoint,
                    const std::string& conf = "") {
  Options options;
  options.rdzv_backend = backend;
  options.rdzv_endpoint = endpoint;
  options.rdzv_conf = conf;
  Result<void> checked = check_rendezvous(options);
  return checked ? "" : checked.error().message;
}

}  // namespace

TEST_CASE("an endpoint is a host with or without a port, IPv6 in brackets") {
  CHECK(parse_endpoint(" node-1.x:29500 ")->host == "node-1.x");
  CHECK(parse_endpoint("node:29500")->port == 29500);
  CHECK(!parse_endpoint("node")->port);
  CHECK(parse_endpoint("")->host == "localhost");
  CHECK(parse_endpoint("[::1]")->host == "::1");
  CHECK(!parse_endpoint("[::1]")->port);
  CHECK(parse_endpoint("[::1]:0")->port == 0);
  CHECK(parse_endpoint("::1:29500").error().message.find("brackets") != std::string::npos);
  for (const char* text : {"localhost:99999", "localhost:", "localhost:x", "a b:1", ":29500",
                           "[::1", "[::1]29500", "[]:1", "a/b:1", "localhost:123456"}) {
    CAPTURE(text);
    CHECK(!parse_endpoint(text));
  }
}

TEST_CASE("a conf is keys with values, the last one of a key winning") {
  CHECK(parse_rdzv_conf(" ")->empty());
  auto conf = *parse_rdzv_conf("a=1, b = x=y ,a=2");
  CHECK(conf.at("a") == "2");
  CHECK(conf.at("b") == "x=y");
  for (const char* text : {"a", "=b", "a=", "a=1,", "backend=b", "run_id=1"}) {
    CAPTURE(text);
    CHECK(!parse_rdzv_conf(text));
  }
}

TEST_CASE("known conf keys are checked by value") {
  CHECK(problem("c10d", "localhost:0", "join_timeout=600,is_host=TRUE,store_type= File") == "");
  for (const char* conf :
       {"join_timeout=0", "read_timeout=0", "is_host=maybe", "store_type=zip", "timeout=x"}) {
    CAPTURE(conf);
    CHECK(problem("c10d", "localhost:0", conf).find(conf) != std::string::npos);
  }
  CHECK(problem("static", "", "store_type=zip") == "");
  CHECK(unknown_conf_keys(*parse_rdzv_conf("join_timout=3,rank=1")).size() == 1);
  CHECK(nearest_conf_key("join_timout") == "join_timeout");
}

TEST_CASE("a static endpoint needs a port and the message says what to do") {
  CHECK(problem("static", "localhost").find("--master-port") != std::string::npos);
  CHECK(problem("static", "localhost:99999").find("99999") != std::string::npos);
  CHECK(problem("static", "[::1]:29500") == "");
  CHECK(problem("static", "") == "");
  CHECK(problem("c10d", "localhost") == "");
  CHECK(problem("c10d", "/a/path", "store_type=file") == "");
}

}  // namespace muster
