// SPDX-License-Identifier: Apache-2.0
#include "supervisor/live_hook.h"

#include <utility>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/verdict_json.h"

namespace muster {

std::unique_ptr<FailureHook> make_live_hook(const LiveHookParts& parts,
                                            std::function<void()> on_idle) {
  const std::string& command = parts.plan.options.on_failure;
  if (command.empty()) return nullptr;
  FailureHook::Callbacks callbacks;
  callbacks.on_trouble = [&recorder = parts.recorder, &logs = parts.logs](const std::string& text) {
    // The record is closed by the job's end.
    if (recorder.state().end) return logs.say("muster: on-failure: " + clean_line(text));
    recorder.trouble("on-failure", text);
  };
  callbacks.on_idle = std::move(on_idle);
  auto hook = std::make_unique<FailureHook>(parts.loop, command, std::move(callbacks));
  // Only the coordinator has the whole verdict, and one node's command is enough for a job.
  parts.recorder.observe(
      [hook = hook.get(), &link = parts.link](const JobState& state, const Event& event) {
        if (makes_verdict(state, event.body) && link.hosting()) hook->run(verdict_json(state));
      });
  return hook;
}

}  // namespace muster
