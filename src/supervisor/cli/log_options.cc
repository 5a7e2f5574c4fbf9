// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/log_options.h"

#include "supervisor/cli/option_setters.h"

namespace muster {
namespace {

using enum OptionGroup;
namespace s = setters;

}  // namespace

std::vector<OptionSpec> stream_options() {
  return {
      {.name = "log-dir",
       .value_name = "DIR",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .completes = Completes::kDirectory,
       .set = s::text<&Options::log_dir>,
       .help = "Where the run's folder is made. Without it runs are kept in a default folder, the "
               "newest --keep-runs of them. /dev/null keeps no files."},
      {.name = "redirects",
       .short_name = 'r',
       .value_name = "MAP",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .default_text = "0",
       .set = s::redirects,
       .help =
           "Streams that go to files only: 0 none, 1 stdout, 2 stderr, 3 both, for all workers or "
           "by local rank as in 0:1,4-7:3."},
      {.name = "tee",
       .short_name = 't',
       .value_name = "MAP",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .default_text = "0",
       .set = s::tee,
       .help = "Streams that go to complete files and, with a prefix, to the console. Same form."},
  };
}

std::vector<OptionSpec> run_folder_options() {
  return {
      {.name = "log-limit",
       .value_name = "SIZE",
       .group = kLogs,
       .environment = true,
       .default_text = "512M",
       .set = s::log_limit,
       .help =
           "Bytes kept per worker and stream of what neither --tee nor --redirects asked for: the "
           "beginning and the newest part. 0 keeps everything."},
      {.name = "keep-runs",
       .value_name = "N",
       .group = kLogs,
       .environment = true,
       .default_text = "20",
       .set = s::keep_runs,
       .help = "How many of the newest runs stay in the default folder."},
      {.name = "logs-specs",
       .value_name = "NAME",
       .group = kLogs,
       .torchrun = true,
       .choices = {"default"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::text<&Options::logs_specs>,
       .help = "Accepted for torchrun's sake; there is only the default."},
      {.name = "event-log-handler",
       .value_name = "NAME",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .default_text = "null",
       .choices = {"null", "console", "dynamic_rendezvous"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::text<&Options::event_log_handler>,
       .help = "console writes torchrun's event lines to stderr. Every event is in events.jsonl in "
               "the run's folder anyway."},
      {.name = "summary",
       .value_name = "FILE",
       .group = kLogs,
       .environment = true,
       .completes = Completes::kFile,
       .set = s::text<&Options::summary_file>,
       .help = "Write summary.json here too: outcome, exit code, root cause, victims, restarts."},
      {.name = "http",
       .value_name = "HOST:PORT|off",
       .group = kLogs,
       .environment = true,
       .default_text = "127.0.0.1 and any free port",
       .choices = {"off"},
       .completes = Completes::kChoices,
       .set = s::http,
       .help = "Where the page with live logs, /status and the rest of the HTTP API listens; its "
               "address is printed with the token that it needs. A port alone stays on this "
               "machine; :PORT or *:PORT is reached from others."},
  };
}

std::vector<OptionSpec> console_options() {
  return {
      {.name = "console",
       .value_name = "MODE",
       .group = kLogs,
       .environment = true,
       .default_text = "auto",
       .choices = {"auto", "raw", "lines", "prefix", "none"},
       .only_choices = true,
       .completes = Completes::kChoices,
       .set = s::console,
       .help =
           "How output reaches the console: raw bytes, whole lines, lines with a prefix, or not "
           "at all. auto is lines for one worker and prefix for several."},
      {.name = "log-line-prefix-template",
       .value_name = "TEXT",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .set = s::text<&Options::log_line_prefix_template>,
       .help =
           "Prefix of teed lines; knows ${role_name}, ${rank}, ${local_rank}, ${hostname}, ${pid}, "
           "${time}, ${attempt} and ${stream}. TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE does the "
           "same."},
      {.name = "local-ranks-filter",
       .value_name = "LIST",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .set = s::local_ranks_filter,
       .help = "Only these local ranks reach the console, as in 0,3-5; files stay complete."},
      {.name = "ranks-filter",
       .value_name = "LIST",
       .group = kLogs,
       .environment = true,
       .set = s::ranks_filter,
       .help = "The same, counted in global ranks."},
      {.name = "duplicate-stdout-filters",
       .value_name = "LIST",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .set = s::duplicate_stdout_filters,
       .help = "Teed stdout lines that contain one of these texts also go to filtered_stdout.log. "
               "Texts are separated by commas; ,, is a comma."},
      {.name = "duplicate-stderr-filters",
       .value_name = "LIST",
       .group = kLogs,
       .torchrun = true,
       .environment = true,
       .set = s::duplicate_stderr_filters,
       .help = "The same for stderr and filtered_stderr.log."},
  };
}

std::vector<OptionSpec> terminal_options() {
  return {
      {.name = "fold",
       .group = kLogs,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::fold>,
       .help = "Show a line that several ranks print within 100 ms once, as [0-7]: text."},
      {.name = "stdin-rank",
       .value_name = "RANK|none",
       .group = kLogs,
       .environment = true,
       .default_text = "0",
       .choices = {"none"},
       .completes = Completes::kChoices,
       .set = s::stdin_rank,
       .help = "Local rank that reads muster's stdin (breakpoint() works there); the others read "
               "/dev/null."},
      {.name = "pty",
       .group = kLogs,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::pty>,
       .help = "Give workers pseudo-terminals, so that colours and progress bars stay."},
  };
}

}  // namespace muster
