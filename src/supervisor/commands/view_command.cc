// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "loop/signal.h"
#include "supervisor/commands/browser.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/find_run.h"
#include "supervisor/commands/run_client.h"
#include "supervisor/commands/say.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/logs/run_folder.h"
#include "supervisor/status/address_file.h"

namespace muster {

namespace {

std::string condition(const RunSource& source) {
  const JobState& state = source.state();
  if (source.live()) return "it still runs";
  if (source.killed()) return "it was killed";
  switch (state.end->outcome) {
    case Outcome::kSucceeded:
      return "it succeeded";
    case Outcome::kStopped:
      return "it was stopped";
    case Outcome::kFailed:
      break;
  }
  return "it failed";
}

void announce(const CommandOptions& options, ServedFolder& served) {
  const RunSource& source = served.source();
  if (options.json) {
    const nlohmann::ordered_json json = {{"url", served.url()},
                                         {"run_id", source.state().job.run_id},
                                         {"run_dir", source.run_dir()},
                                         {"live", source.live()}};
    print(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  print(served.url() + "\n");
  say("run " + clean_line(source.state().job.run_id) + " · " + condition(source) + " · " +
      clean_line(source.run_dir()) + " · Ctrl-C ends this");
  if (!source.live()) return;
  if (const auto address = read_address_file(source.run_dir())) {
    say("its own page, which can also stop it: " + address->url);
  }
}

}  // namespace

int run_view(const CommandOptions& options) {
  Loop loop;
  Result<std::string> folder = find_run(options.run, default_run_bases());
  if (!folder) return fail("view", Error{kExitNoRun, folder.error().message});
  auto served = ServedFolder::start(loop, *folder, options.http);
  if (!served) return fail("view", served.error());
  auto on_end = [&loop] { loop.stop(); };
  auto interrupt = SignalWatch::start(loop, SIGINT, on_end);
  auto terminate = SignalWatch::start(loop, SIGTERM, on_end);
  auto hang_up = SignalWatch::start(loop, SIGHUP, on_end);
  announce(options, **served);
  std::optional<BrowserPage> page;
  if (options.open) {
    Result<BrowserPage> opened = BrowserPage::open((*served)->url());
    if (!opened) say(opened.error().message);
    if (opened) page.emplace(std::move(*opened));
  }
  loop.run();
  return kExitFine;
}

}  // namespace muster
