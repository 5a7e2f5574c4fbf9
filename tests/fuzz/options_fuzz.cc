// SPDX-License-Identifier: Apache-2.0
//
// The option grammar: each line of the input is a word of the command line, or, if it begins with a
// known kind of variable, part of the environment. Whatever it says, the answer is either options
// that keep their promises or a text to print.
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "loop/check.h"
#include "supervisor/cli/engine.h"
#include "supervisor/cli/hostlist.h"
#include "supervisor/cli/parse.h"
#include "supervisor/cli/plan_warnings.h"
#include "supervisor/cli/rendezvous_planner.h"
#include "supervisor/cli/store_place.h"
#include "supervisor/cli/stream_map.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

bool is_variable(const std::string& line) {
  if (line.find('=') == std::string::npos) return false;
  for (const char* prefix : {"PET_", "TORCH", "SLURM", "OMPI_", "PMI", "MPI_", "JOB_"}) {
    if (line.starts_with(prefix)) return true;
  }
  return false;
}

void check_options(const Options& options) {
  MUST(!options.script.empty());
  MUST(options.min_nodes >= 1 && options.min_nodes <= options.max_nodes);
  MUST(options.max_restarts >= 0);
  MUST(options.shutdown_timeout.count() >= 0);
  // As nodes tell each other.
  MUST(parse_failure_policy(failure_policy_text(options.failure_policy)));
  MUST(parse_same_failure_limit(same_failure_limit_text(options.same_failure_limit)));
  MUST(parse_restart_backoff(restart_backoff_text(options.restart_backoff)));
  MUST(parse_stream_map(options.redirects));
  MUST(parse_stream_map(options.tee));
  MUST(parse_rank_filter(options.ranks_filter));
  MUST(!options.rdzv_id.empty());
  Result<RendezvousPlan> rendezvous = plan_rendezvous(options);
  if (!rendezvous) {
    MUST(rendezvous.error().code == 2 && rendezvous.error().message.ends_with("\n"));
    return;
  }
  MUST(rendezvous->min_nodes >= 1 && rendezvous->min_nodes <= rendezvous->max_nodes);
  MUST(rendezvous->keep_alive_interval.count() > 0 && rendezvous->keep_alive_max_attempt > 0);
  MUST(!rendezvous->node_rank || *rendezvous->node_rank < rendezvous->max_nodes);
  if (rendezvous->several_nodes()) MUST(meeting_point(*rendezvous).size() > 1);
  StorePlace place = choose_store_place(options, *rendezvous);
  MUST(place.port >= 0 && place.port <= 65535);
  MUST(folder_name_for(place.run_id).find('/') == std::string::npos);
  for (const std::string& line : options_without_effect(options, *rendezvous, 2)) {
    MUST(!line.empty());
  }
}

// The same with what an engine adds, which may refuse the job but not break a promise.
void check_engine(Options options, const Environment& environment) {
  Result<EngineChoice> engine = take_engine(options, environment, "host-a");
  if (!engine) {
    MUST(engine.error().code == 2 && engine.error().message.ends_with("\n"));
    return;
  }
  for (const std::string& line : engine->notes)
    MUST(line.find('\n') == std::string::npos);
  check_options(options);
}

void check_hostlist(const std::string& text) {
  Result<std::vector<std::string>> hosts = expand_hostlist(text);
  if (!hosts) return;
  MUST(!hosts->empty() && hosts->size() <= kMaxHosts);
  for (const std::string& host : *hosts)
    MUST(!host.empty() && host.find_first_of("[],") == std::string::npos);
}

void check_exit(const EarlyExit& exit) {
  MUST(exit.code == 0 || exit.code == 2);
  MUST((exit.code == 0) == exit.err.empty());
  MUST((exit.code == 0) == !exit.out.empty());
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> argv = {"muster"};
  muster::Environment environment;
  std::string text(reinterpret_cast<const char*>(data), size);
  for (std::string& line : muster::split(text, '\n')) {
    muster::check_hostlist(line);
    (muster::is_variable(line) ? environment : argv).push_back(std::move(line));
  }
  muster::Parsed parsed = muster::parse(argv, environment);
  if (auto* options = std::get_if<muster::Options>(&parsed)) {
    muster::check_options(*options);
    muster::check_engine(*options, environment);
  } else {
    muster::check_exit(std::get<muster::EarlyExit>(parsed));
  }
  return 0;
}
