// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/routes.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

std::vector<WorkerRoutes> routes(const Options& options, int workers, bool keep_files = true,
                                 const std::string& variable = "") {
  auto result = plan_routes(options, workers, 0, keep_files, variable);
  REQUIRE(result.has_value());
  return *result;
}

}  // namespace

TEST_CASE("without flags a single worker is shown without prefix and kept in a bounded file") {
  StreamRoute route = routes({}, 1)[0].out;
  CHECK(route.pipe);
  CHECK(route.console);
  CHECK(route.file);
  CHECK_FALSE(route.complete);
  CHECK(route.prefix.empty());
}

TEST_CASE("several workers are told apart by their rank") {
  CHECK(routes({}, 2)[1].err.prefix == "[${rank}]: ");
}

TEST_CASE("a teed stream has torchrun's prefix, a complete file and the filters") {
  Options options;
  options.tee = "1";
  WorkerRoutes worker = routes(options, 1)[0];
  CHECK(worker.out.prefix == "[${role_name}${local_rank}]:");
  CHECK(worker.out.complete);
  CHECK(worker.out.filter);
  CHECK(worker.err.prefix.empty());
  CHECK_FALSE(worker.err.complete);
}

TEST_CASE("redirected streams are the worker's own file and not on the console") {
  Options options;
  options.redirects = "0:1";
  options.tee = "1:2";
  auto all = routes(options, 2);
  CHECK_FALSE(all[0].out.pipe);
  CHECK_FALSE(all[0].out.console);
  CHECK(all[0].err.pipe);
  CHECK(all[1].err.complete);
  CHECK(all[1].err.console);
}

TEST_CASE("tee wins over redirect") {
  Options options;
  options.redirects = options.tee = "3";
  CHECK(routes(options, 1)[0].out.pipe);
  CHECK(routes(options, 1)[0].out.console);
}

TEST_CASE("without files everything goes to the console") {
  Options options;
  options.redirects = "3";
  StreamRoute route = routes(options, 1, false)[0].out;
  CHECK(route.pipe);
  CHECK(route.console);
  CHECK_FALSE(route.file);
}

TEST_CASE("rank filters limit the console and nothing else") {
  Options options;
  options.local_ranks_filter = "1";
  options.tee = "1";
  auto all = routes(options, 2);
  CHECK_FALSE(all[0].out.console);
  CHECK_FALSE(all[0].out.filter);
  CHECK(all[0].out.complete);
  CHECK(all[0].err.file);
  CHECK(all[1].out.console);
}

TEST_CASE("the prefix option beats the variable, and the console mode beats both") {
  Options options;
  options.tee = "3";
  CHECK(routes(options, 1, true, "var:")[0].out.prefix == "var:");
  options.log_line_prefix_template = "opt:";
  CHECK(routes(options, 1, true, "var:")[0].out.prefix == "opt:");
  options.console = ConsoleMode::kLines;
  CHECK(routes(options, 1, true, "var:")[0].out.prefix.empty());
  options.console = ConsoleMode::kRaw;
  CHECK(routes(options, 1)[0].out.raw);
  options.console = ConsoleMode::kNone;
  CHECK_FALSE(routes(options, 1)[0].out.console);
  CHECK(routes(options, 1)[0].out.complete);
}

TEST_CASE("a single worker on a pseudo-terminal has the console to itself") {
  Options options;
  options.pty = true;
  CHECK(routes(options, 1)[0].out.raw);
  CHECK_FALSE(routes(options, 2)[0].out.raw);
  options.console = ConsoleMode::kLines;
  CHECK_FALSE(routes(options, 1)[0].out.raw);
  options.console = ConsoleMode::kAuto;
  options.tee = "3";
  CHECK_FALSE(routes(options, 1)[0].out.raw);
}

TEST_CASE("a bad map is an error") {
  Options options;
  options.tee = "0:9";
  CHECK_FALSE(plan_routes(options, 1, 0, true, "").has_value());
}

}  // namespace muster
