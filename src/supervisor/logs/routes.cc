// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/routes.h"

#include "supervisor/cli/stream_map.h"

namespace muster {

namespace {

constexpr char kTeePrefix[] = "[${role_name}${local_rank}]:";
constexpr char kRankPrefix[] = "[${rank}]: ";

std::string prefix_template(const Options& options, bool tee, int workers,
                            const std::string& prefix_variable) {
  if (options.console == ConsoleMode::kRaw || options.console == ConsoleMode::kLines) return "";
  bool wanted = tee || workers > 1 || options.console == ConsoleMode::kPrefix;
  if (!wanted) return "";
  if (!options.log_line_prefix_template.empty()) return options.log_line_prefix_template;
  if (!prefix_variable.empty()) return prefix_variable;
  return tee ? kTeePrefix : kRankPrefix;
}

}  // namespace

Result<std::vector<WorkerRoutes>> plan_routes(const Options& options, int workers, int first_rank,
                                              bool keep_files, const std::string& prefix_variable) {
  auto redirects = parse_stream_map(options.redirects);
  if (!redirects) return redirects.error();
  auto tee = parse_stream_map(options.tee);
  if (!tee) return tee.error();
  auto local_filter = parse_rank_filter(options.local_ranks_filter);
  if (!local_filter) return local_filter.error();
  auto rank_filter = parse_rank_filter(options.ranks_filter);
  if (!rank_filter) return rank_filter.error();

  std::vector<WorkerRoutes> routes(static_cast<size_t>(workers));
  for (int local_rank = 0; local_rank < workers; ++local_rank) {
    bool shown = options.console != ConsoleMode::kNone && local_filter->passes(local_rank) &&
                 rank_filter->passes(first_rank + local_rank);
    for (Stream stream : {Stream::kStdout, Stream::kStderr}) {
      bool teed = tee->for_rank(local_rank).has(stream);
      bool redirected = redirects->for_rank(local_rank).has(stream) && !teed && keep_files;
      StreamRoute& route = routes[static_cast<size_t>(local_rank)].of(stream);
      route.pipe = !redirected;
      route.file = keep_files;
      route.complete = teed || redirected;
      route.console = shown && !redirected;
      route.filter = teed && shown;
      route.prefix = prefix_template(options, teed, workers, prefix_variable);
      // A single worker that is given a terminal may move the cursor as it likes.
      bool live = options.pty && options.console == ConsoleMode::kAuto && route.prefix.empty();
      route.raw = options.console == ConsoleMode::kRaw || live;
    }
  }
  return routes;
}

}  // namespace muster
