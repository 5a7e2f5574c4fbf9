// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace doubles {
namespace {

struct Rule {
  std::string name;
  std::string action;
  int value = 0;
  int only = 0;  // 0: each call
  int calls = 0;
};

Rule parse_rule(const std::string& text) {
  Rule rule;
  char name[64];
  char action[16];
  int end = 0;
  if (std::sscanf(text.c_str(), "%63[^:]:%15[a-z]%n", name, action, &end) != 2) {
    std::fprintf(stderr, "DOUBLE_FAULTS: cannot read \"%s\"\n", text.c_str());
    std::abort();
  }
  rule.name = name;
  rule.action = action;
  std::string rest = text.substr(static_cast<size_t>(end));
  if (rest.starts_with("=")) rule.value = std::atoi(rest.c_str() + 1);
  if (size_t at = rest.find('@'); at != std::string::npos) {
    rule.only = std::atoi(rest.c_str() + at + 1);
  }
  return rule;
}

std::vector<Rule> parse_rules() {
  std::vector<Rule> rules;
  const char* text = std::getenv("DOUBLE_FAULTS");
  std::istringstream words(text ? text : "");
  for (std::string word; std::getline(words, word, ',');)
    rules.push_back(parse_rule(word));
  return rules;
}

int act(const Rule& rule) {
  if (rule.action == "fail") return rule.value;
  if (rule.action == "stay") return kStay;
  if (rule.action == "delay") std::this_thread::sleep_for(std::chrono::milliseconds(rule.value));
  while (rule.action == "block")
    pause();
  return 0;
}

}  // namespace

int fault(const char* name) {
  // Never freed: threads that outlive main() still ask.
  static auto* mutex = new std::mutex;
  static auto* rules = new std::vector<Rule>(parse_rules());
  std::vector<Rule> hit;
  {
    std::lock_guard lock(*mutex);
    for (Rule& rule : *rules) {
      if (rule.name != name) continue;
      ++rule.calls;
      if (rule.only == 0 || rule.only == rule.calls) hit.push_back(rule);
    }
  }
  for (const Rule& rule : hit) {
    if (int answer = act(rule); answer != 0) return answer;
  }
  return 0;
}

long env_number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

}  // namespace doubles
