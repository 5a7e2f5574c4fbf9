// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/place.h"

#include <doctest/doctest.h>

#include <map>

namespace muster::comm::detail {

namespace {

using Map = std::map<std::string, std::string>;

Variables of(const Map& map) {
  return [map](const char* name) -> std::optional<std::string> {
    const auto found = map.find(name);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  };
}

const Map kGood{{"RANK", "2"},
                {"WORLD_SIZE", "4"},
                {"MASTER_ADDR", "node0"},
                {"MASTER_PORT", "1"},
                {"LOCAL_RANK", "0"},
                {"LOCAL_WORLD_SIZE", "2"},
                {"TORCHELASTIC_RUN_ID", "r"},
                {"TORCHELASTIC_RESTART_COUNT", "3"}};

Map with(const char* name, const std::string& value) {
  Map map = kGood;
  map[name] = value;
  return map;
}

Map without(const char* name) {
  Map map = kGood;
  map.erase(name);
  return map;
}

std::string complaint(const Map& map, const JoinOptions& options = {}) {
  const Result<Place> place = read_place(options, of(map));
  if (!place) {
    CHECK(place.error().code == ErrorCode::kInvalidArgument);
    return place.error().message;
  }
  const Result<Venue> venue = read_venue(options, of(map));
  if (!venue) {
    CHECK(venue.error().code == ErrorCode::kInvalidArgument);
    return venue.error().message;
  }
  return "none";
}

JoinOptions method(const std::string& init_method) {
  JoinOptions options;
  options.init_method = init_method;
  return options;
}

}  // namespace

TEST_CASE("a launcher's environment says everything") {
  const Result<Place> place = read_place({}, of(kGood));
  REQUIRE(place.has_value());
  CHECK(place->rank == 2);
  CHECK(place->size == 4);
  CHECK(place->local_rank == 0);
  CHECK(place->local_size == 2);
  CHECK(place->attempt == 3);
  CHECK(place->run_id == "r");
  const Result<Venue> venue = read_venue({}, of(kGood));
  REQUIRE(venue.has_value());
  CHECK(venue->to_string() == "the store at node0:1");
  CHECK(venue->hosted);
}

TEST_CASE("the store is the launcher's if the environment says so, however it spells it") {
  for (const char* yes : {"True", "true", "1"})
    CHECK_FALSE(read_venue({}, of(with("TORCHELASTIC_USE_AGENT_STORE", yes)))->hosted);
  for (const char* no : {"False", "0", "no"})
    CHECK(read_venue({}, of(with("TORCHELASTIC_USE_AGENT_STORE", no)))->hosted);
}

TEST_CASE("options stand above the environment, which may then be empty") {
  JoinOptions options = method("tcp://[fe80::1%eth0]:29500");
  options.rank = 1;
  options.world_size = 3;
  const Result<Place> place = read_place(options, of({}));
  REQUIRE(place.has_value());
  CHECK(place->rank == 1);
  CHECK(place->size == 3);
  CHECK(place->local_size == 1);
  const Result<Venue> venue = read_venue(options, of({}));
  CHECK(venue->host == "fe80::1%eth0");
  CHECK(venue->port == 29500);
  CHECK(venue->hosted);
  CHECK(venue->to_string() == "the store at [fe80::1%eth0]:29500");
  CHECK(read_venue(method("file:///a/b"), of({}))->path == "/a/b");
}

TEST_CASE("what is missing or cannot be is named, with what it may be") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    CHECK(complaint(without(name)).starts_with("joining: " + std::string(name) + " is not set: "));
  CHECK(complaint(with("RANK", "7")) == "joining: RANK=7 of WORLD_SIZE=4: must be 0 to 3");
  CHECK(complaint(with("RANK", "-1")) == "joining: RANK='-1': must be at least 0");
  CHECK(complaint(with("RANK", "2x")) == "joining: RANK='2x': not a number");
  CHECK(complaint(with("WORLD_SIZE", "0")) == "joining: WORLD_SIZE='0': must be 1 to 65536");
  CHECK(complaint(with("WORLD_SIZE", "65537")).ends_with("must be 1 to 65536"));
  CHECK(complaint(with("MASTER_PORT", "0")) == "joining: MASTER_PORT='0': must be 1 to 65535");
  CHECK(complaint(with("MASTER_PORT", "65536")).ends_with("must be 1 to 65535"));
  CHECK(complaint(with("MASTER_PORT", "99999999999")).ends_with("not a number"));
  CHECK(complaint(with("LOCAL_RANK", "2")) ==
        "joining: LOCAL_RANK=2 of LOCAL_WORLD_SIZE=2: must be 0 to 1");
  CHECK(complaint(with("TORCHELASTIC_RESTART_COUNT", "x")).find("RESTART_COUNT='x'") !=
        std::string::npos);
  JoinOptions options;
  options.rank = 4;
  CHECK(complaint(kGood, options) == "joining: rank 4 of WORLD_SIZE=4: must be 0 to 3");
  options.world_size = -1;
  CHECK(complaint(kGood, options) == "joining: world_size -1: must be 1 to 65536");
}

TEST_CASE("an init_method that cannot be is named, with what is missing") {
  const auto says = [](const std::string& text, const std::string& end) {
    const std::string message = complaint(kGood, method(text));
    CAPTURE(message);
    CHECK(message.starts_with("joining: init_method '" + text + "': "));
    CHECK(message.ends_with(end));
  };
  says("", "must be env://, tcp://host:port or file:///path");
  says("udp://x:1", "must be env://, tcp://host:port or file:///path");
  says("tcp://host", "the port is missing (tcp://host:port)");
  says("tcp://[::1]", "the port is missing (tcp://host:port)");
  says("tcp://:1", "the host is missing (tcp://host:port)");
  says("tcp://host:", "port '': must be 1 to 65535");
  says("tcp://host:70000", "port '70000': must be 1 to 65535");
  says("file://relative", "the path of a file is missing (file:///path)");
  says("file:///folder/", "the path of a file is missing (file:///path)");
}

}  // namespace muster::comm::detail
