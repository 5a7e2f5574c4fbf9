// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "supervisor/commands/commands.h"
#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/run_client.h"
#include "supervisor/commands/say.h"
#include "supervisor/commands/status_text.h"
#include "supervisor/commands/terminal_text.h"

namespace muster {

namespace {

int show(const CommandOptions& options, const RunClient& client, const std::string& json) {
  const StatusStyle style{wants_colour(STDOUT_FILENO), !options.ranks.empty()};
  Result<StatusText> text = status_text(json, style);
  if (!text) return fail("status", {kExitNoAnswer, client.name() + ": " + text.error().message});
  if (options.json) {
    print(json);
    return text->bad ? kExitBad : kExitFine;
  }
  std::string all;
  for (const std::string& line : text->lines)
    all += line + "\n";
  print(all);
  return text->bad ? kExitBad : kExitFine;
}

}  // namespace

int run_status(const CommandOptions& options) {
  Loop loop;
  auto client = RunClient::open(loop, options.run);
  if (!client) return fail("status", client.error());
  std::string target = "/status";
  if (!options.ranks.empty()) target += "?ranks=" + options.ranks;
  int code = kExitNoAnswer;
  auto call = (*client)->get(target, [&](const Result<std::string>& body) {
    code = body ? show(options, **client, *body) : fail("status", body.error());
    loop.stop();
  });
  loop.run();
  return code;
}

}  // namespace muster
