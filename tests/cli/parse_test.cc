// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/parse.h"

#include <doctest/doctest.h>

#include "supervisor/cli/suggest.h"

namespace muster {
namespace {

using Strings = std::vector<std::string>;

Parsed parse_line(Strings words, const Environment& environment = {}) {
  words.insert(words.begin(), "muster");
  return parse(words, environment);
}

Options options_of(Strings words, const Environment& environment = {}) {
  Parsed parsed = parse_line(std::move(words), environment);
  if (EarlyExit* exit = std::get_if<EarlyExit>(&parsed)) FAIL(exit->err);
  return std::get<Options>(parsed);
}

// The message of a usage error, "" if there was none.
std::string error_of(Strings words, const Environment& environment = {}) {
  Parsed parsed = parse_line(std::move(words), environment);
  EarlyExit* exit = std::get_if<EarlyExit>(&parsed);
  if (exit == nullptr) return "";
  CHECK(exit->code == 2);
  CHECK(exit->out.empty());
  CHECK(exit->err.starts_with("usage: muster"));
  return exit->err;
}

bool mentions(const std::string& text, const std::string& part) {
  INFO(text);
  INFO(part);
  bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("a missing script is a usage error") {
  mentions(error_of({}), "the following arguments are required: training_script");
  mentions(error_of({"--nproc-per-node", "2"}), "training_script");
  mentions(error_of({"--"}), "training_script");
  mentions(error_of({"run"}), "training_script");
  mentions(error_of({""}), "empty");
}

TEST_CASE("both spellings, '=', blanks and short forms mean the same") {
  for (const Strings& words :
       {Strings{"--nproc-per-node", "2", "x.py"}, Strings{"--nproc_per_node", "2", "x.py"},
        Strings{"--nproc-per-node=2", "x.py"}, Strings{"--nproc_per_node=2", "x.py"},
        Strings{"run", "--nproc_per_node=2", "x.py"}}) {
    CHECK(options_of(words).nproc_per_node == "2");
  }
  for (const Strings& words : {Strings{"-r", "3", "x"}, Strings{"-r3", "x"}, Strings{"-r=3", "x"},
                               Strings{"--redirects=3", "x"}, Strings{"-mr3", "x"}}) {
    CHECK(options_of(words).redirects == "3");
  }
}

TEST_CASE("prefixes are enough, also where only the spelling is open") {
  CHECK(options_of({"--ro", "r1", "x"}).role == "r1");
  CHECK(options_of({"--nproc-per", "2", "x"}).nproc_per_node == "2");
  CHECK(options_of({"--nproc", "2", "x"}).nproc_per_node == "2");
  CHECK(options_of({"--nproc_per=2", "x"}).nproc_per_node == "2");
}

TEST_CASE("a prefix that is unique in torchrun keeps its meaning beside muster's own options") {
  CHECK(options_of({"--re", "3", "x"}).redirects == "3");  // not --restart-always
  CHECK(options_of({"--log-d", "d", "x"}).log_dir == "d");
  CHECK(options_of({"--stan", "x"}).standalone);
}

TEST_CASE("an ambiguous prefix names what it could be") {
  std::string error = error_of({"--rdzv", "x", "x.py"});
  mentions(error, "ambiguous option: --rdzv could be");
  mentions(error, "--rdzv-backend");
  mentions(error, "--rdzv-id");
}

TEST_CASE("an unknown option is quoted with the nearest valid one") {
  mentions(error_of({"--foo", "w.sh"}), "unrecognized arguments: --foo");
  mentions(error_of({"--nprocs", "2", "w.sh"}), "--nprocs (did you mean --nproc-per-node?)");
  mentions(error_of({"--nprc", "2", "w.sh"}), "--nprc (did you mean --nproc-per-node?)");
  mentions(error_of({"--max-restart-s=2", "w.sh"}),
           "--max-restart-s (did you mean --max-restarts?)");
  mentions(error_of({"--standalnoe", "w.sh"}), "did you mean --standalone?");
  mentions(error_of({"--use-env", "w.sh"}), "--use-env belongs to");
  mentions(error_of({"-x", "w.sh"}), "unrecognized arguments: -x");
  CHECK(error_of({"--zzzzzzzz", "w.sh"}).find("did you mean") == std::string::npos);
}

TEST_CASE("values that are missing, look like options or are not wanted are refused") {
  mentions(error_of({"--role"}), "--role: expected one argument");
  mentions(error_of({"--role", "--tee"}), "'--tee' looks like an option");
  mentions(error_of({"--role", "-x", "w"}), "write --role=-x");
  mentions(error_of({"--role", "--", "w"}), "expected one argument");
  mentions(error_of({"--standalone=1", "w"}), "--standalone is a flag");
  CHECK(options_of({"--role=-x", "w"}).role == "-x");
  CHECK(options_of({"--role", "-", "w"}).role == "-");
  CHECK(options_of({"--role", "-a b", "w"}).role == "-a b");
  mentions(error_of({"--max-restarts", "-1", "w"}), "--max-restarts '-1': must be at least 0");
}

TEST_CASE("nothing after the script is interpreted") {
  Strings tail = {"--nnodes", "7", "-x", "--help", "--d", "3", "--nproc", "3", "--r=16"};
  Strings words = {"--no-python", "w.sh"};
  words.insert(words.end(), tail.begin(), tail.end());
  Options options = options_of(words);
  CHECK(options.script == "w.sh");
  CHECK(options.script_args == tail);
  CHECK(options.max_nodes == 1);
}

TEST_CASE("the first -- next to the script is dropped, later ones are the script's") {
  CHECK(options_of({"--no-python", "--", "w.sh", "--", "a"}).script_args == Strings{"--", "a"});
  CHECK(options_of({"--no-python", "w.sh", "--", "a"}).script_args == Strings{"a"});
  CHECK(options_of({"w.sh", "a", "--", "b"}).script_args == Strings{"a", "--", "b"});
  CHECK(options_of({"w.sh", "--", "--", "b"}).script_args == Strings{"--", "b"});
  CHECK(options_of({"--", "--odd-name.py"}).script == "--odd-name.py");
  CHECK(options_of({"w.sh", ""}).script_args == Strings{""});
}

TEST_CASE("run is a subcommand only as the first word") {
  CHECK(options_of({"run", "x.py", "run"}).script == "x.py");
  CHECK(options_of({"./run"}).script == "./run");
  CHECK(options_of({"run", "run"}).script == "run");
}

TEST_CASE("PET_ variables are defaults that the command line beats") {
  Environment environment = {"PET_NPROC_PER_NODE=2", "PET_REDIRECTS=3", "PET_MODULE=1"};
  Options options = options_of({"x"}, environment);
  CHECK(options.nproc_per_node == "2");
  CHECK(options.redirects == "3");
  CHECK(options.module);
  CHECK(options.was_given("nproc_per_node"));
  CHECK(options_of({"--nproc-per-node", "1", "x"}, environment).nproc_per_node == "1");
  CHECK(options_of({"--max-restarts", "1", "x"}, {"PET_MAX_RESTARTS=abc"}).max_restarts == 1);
}

TEST_CASE("PET_ flags take the usual words of truth") {
  for (const char* yes : {"1", "true", "YES", "2"}) {
    CHECK(options_of({"x"}, {std::string("PET_STANDALONE=") + yes}).standalone);
  }
  for (const char* no : {"0", "false", "No"}) {
    Options options = options_of({"x"}, {std::string("PET_STANDALONE=") + no});
    CHECK(!options.standalone);
    CHECK(!options.was_given("standalone"));
  }
  mentions(error_of({"x"}, {"PET_STANDALONE=maybe"}), "PET_STANDALONE=maybe");
}

TEST_CASE("a bad PET_ value names the variable and the option") {
  std::string error = error_of({"x"}, {"PET_MAX_RESTARTS=abc"});
  mentions(error, "PET_MAX_RESTARTS=abc");
  mentions(error, "--max-restarts");
  mentions(error_of({"x"}, {"PET_NNODES="}), "PET_NNODES is set to an empty text");
  mentions(error_of({"x"}, {"PET_STANDALONE="}), "PET_STANDALONE is set to an empty text");
  mentions(error_of({"x"}, {"PET_START_METHOD=foo"}), "PET_START_METHOD=foo");
  CHECK(options_of({"x"}, {"PET_LOG_DIR=", "PET_RDZV_ENDPOINT=", "PET_RDZV_CONF="}).log_dir == "");
  CHECK(options_of({"x"}, {"PET_LOGS_SPECS=foo", "PET_NUMA_BINDING=foo"}).logs_specs == "");
}

TEST_CASE("bad values are usage errors that quote the value") {
  for (const char* nnodes : {"1:2:3", "x", "0", "2:1"}) {
    mentions(error_of({"--nnodes", nnodes, "x"}), std::string("--nnodes '") + nnodes + "'");
  }
  for (const Strings& words : {Strings{"--max-restarts", "-1"},
                               Strings{"--nproc-per-node", "0"},
                               Strings{"--nproc-per-node", "foo"},
                               Strings{"--monitor-interval", "0"},
                               Strings{"--shutdown-timeout", "-1"},
                               Strings{"--hang-timeout", "-1"},
                               Strings{"--hang-timeout", "soon"},
                               Strings{"--hang-timeout", "60:shout"},
                               Strings{"--hang-timeout", "60:"},
                               Strings{"--hang-timeout", ":warn"},
                               Strings{"-r", "4"},
                               Strings{"--tee", "a:1"},
                               Strings{"--local-ranks-filter", "a"},
                               Strings{"--rdzv-conf", "a"},
                               Strings{"--rdzv-conf", "=b"},
                               Strings{"--rdzv-conf", "backend=b"},
                               Strings{"--rdzv-backend", "foo"},
                               Strings{"--rdzv-backend", ""},
                               Strings{"--rdzv-id", ""},
                               Strings{"--start-method", "foo"},
                               Strings{"--event-log-handler", "foo"},
                               Strings{"--logs-specs", "foo"},
                               Strings{"--numa-binding", "foo"},
                               Strings{"--master-port", "70000"},
                               Strings{"--node-rank", "-1"},
                               Strings{"--signals-to-handle", "SIGTERM,SIGKILL"},
                               Strings{"--log-limit", "lots"},
                               Strings{"--stdin-rank", "x"},
                               Strings{"--gpus", ""},
                               Strings{"--omp-threads", "0"},
                               Strings{"--print-completion", "ksh"}}) {
    Strings line = words;
    line.push_back("x.py");
    CAPTURE(words[0]);
    CAPTURE(words[1]);
    mentions(error_of(line), "'" + words[1] + "'");
  }
}

TEST_CASE("values that torchrun takes are taken") {
  CHECK(options_of({"--nproc-per-node", " 1_0 ", "x"}).nproc_per_node == "10");
  CHECK(options_of({"-r3", "-t", "0:1,1:3", "x"}).tee == "0:1,1:3");
  CHECK(options_of({"--logs-specs", "default", "x"}).logs_specs == "default");
  CHECK(options_of({"--nnodes", "1:4", "x"}).max_nodes == 4);
  CHECK(options_of({"--duplicate-stdout-filters", "a,,b,c", "x"}).duplicate_stdout_filters ==
        Strings{"a,b", "c"});
  CHECK(options_of({"--duplicate-stderr-filters=", "x"}).duplicate_stderr_filters == Strings{""});
  CHECK(!options_of({"x"}).duplicate_stderr_filters);
}

TEST_CASE("repeated --rdzv-conf is joined, other repeats are replaced") {
  CHECK(options_of({"--rdzv-conf", "a=1", "--rdzv-conf", "b=2", "x"}).rdzv_conf == "a=1,b=2");
  CHECK(options_of({"--role", "a", "--role", "b", "x"}).role == "b");
}

TEST_CASE("the shutdown time-out has an environment form that the option beats") {
  Environment environment = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7"};
  CHECK(options_of({"x"}, environment).shutdown_timeout == std::chrono::seconds(7));
  CHECK(options_of({"--shutdown-timeout", "3", "x"}, environment).shutdown_timeout ==
        std::chrono::seconds(3));
  for (const char* bad : {"abc", "-5", ""}) {
    mentions(error_of({"x"}, {std::string("TORCH_ELASTIC_SHUTDOWN_TIMEOUT=") + bad}),
             "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=");
  }
}

TEST_CASE("a hang time-out is a time, or a time and what happens then") {
  CHECK(options_of({"x"}).hang_timeout == std::chrono::minutes(5));
  CHECK(options_of({"--hang-timeout", "0", "x"}).hang_timeout.count() == 0);
  CHECK(options_of({"--hang-timeout", "1.5", "x"}).hang_timeout ==
        std::chrono::milliseconds(1'500));
  CHECK(options_of({"x"}).hang_action == HangAction::kDump);
  const Options options = options_of({"--hang-timeout", "90:restart", "x"});
  CHECK(options.hang_timeout == std::chrono::seconds(90));
  CHECK(options.hang_action == HangAction::kRestart);
  CHECK(options_of({"--hang-timeout", "90:fail", "x"}).hang_action == HangAction::kFail);
  CHECK(options_of({"--hang-timeout", "90:warn", "x"}).hang_action == HangAction::kWarn);
}

TEST_CASE("the prefix template option beats its variable") {
  Environment environment = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=<env>"};
  CHECK(options_of({"x"}, environment).log_line_prefix_template == "<env>");
  CHECK(options_of({"--log-line-prefix-template", "<o>", "x"}, environment)
            .log_line_prefix_template == "<o>");
}

TEST_CASE("--no-python excludes --module unless --run-path beats it") {
  mentions(error_of({"--no-python", "--module", "x"}), "--no-python and --module");
  CHECK(options_of({"--no-python", "--module", "--run-path", "x"}).run_path);
}

TEST_CASE("no run id is as bad as an empty one") {
  mentions(error_of({"--rdzv-id", "", "x"}), "leave the option out");
}

TEST_CASE("an edit distance counts insertions, removals, replacements and swaps") {
  CHECK(edit_distance("tee", "tee") == 0);
  CHECK(edit_distance("", "tee") == 3);
  CHECK(edit_distance("role", "rol") == 1);
  CHECK(edit_distance("rloe", "role") == 1);
  CHECK(edit_distance("abc", "xyz") == 3);
}

TEST_CASE("the logs of a rank that nobody asked for are kept up to 1 GiB") {
  Parsed parsed = parse({"muster", "x.py"}, {});
  REQUIRE(std::holds_alternative<Options>(parsed));
  const int streams = 2;
  CHECK(std::get<Options>(parsed).log_limit * streams == int64_t{1} << 30);
}

}  // namespace muster
