// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "supervisor/commands/commands.h"
#include "supervisor/commands/exit_codes.h"
#include "supervisor/commands/json_get.h"
#include "supervisor/commands/run_client.h"
#include "supervisor/commands/say.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/stacks/stack_groups.h"

namespace muster {

namespace {

using Json = nlohmann::json;

// A node takes up to 20 s, and its answer some time on the way.
constexpr Milliseconds kDumpPatience{40'000};

std::string node_line(const Json& node) {
  const std::string folder = clean_line(json_text(node, "folder"));
  std::string line = clean_line(json_text(node, "host")) + ": ";
  line += folder.empty() ? "nothing was written" : folder;
  const std::string trouble = clean_line(json_text(node, "trouble"));
  return trouble.empty() ? line : line + " (" + trouble + ")";
}

// Whether anything was seen of any worker, or is in a file.
bool has_something(const Json& answer) {
  for (const Json& group : json_part(answer, "groups"))
    if (group.is_string() && !group.get<std::string>().ends_with(kUnseen)) return true;
  const Json& saved = json_part(answer, "saved");
  return std::any_of(saved.begin(), saved.end(),
                     [](const Json& node) { return !json_text(node, "folder").empty(); });
}

int show(const CommandOptions& options, const RunClient& client, const std::string& body) {
  const Json answer = Json::parse(body, nullptr, false);
  if (!answer.is_object()) {
    return fail("dump", {kExitNoAnswer, client.name() + ": an answer that is not understood"});
  }
  const int code = has_something(answer) ? kExitFine : kExitBad;
  if (options.json) return print(body), code;
  std::string text;
  for (const Json& group : json_part(answer, "groups"))
    if (group.is_string()) text += clean_line(group.get<std::string>()) + "\n";
  for (const Json& node : json_part(answer, "saved"))
    text += node_line(node) + "\n";
  print(text);
  return code;
}

}  // namespace

int run_dump(const CommandOptions& options) {
  Loop loop;
  auto client = RunClient::open(loop, options.run);
  if (!client) return fail("dump", client.error());
  int code = kExitNoAnswer;
  auto call = (*client)->post("/api/v1/dump", kDumpPatience, [&](const Result<std::string>& body) {
    code = body ? show(options, **client, *body) : fail("dump", body.error());
    loop.stop();
  });
  loop.run();
  return code;
}

}  // namespace muster
