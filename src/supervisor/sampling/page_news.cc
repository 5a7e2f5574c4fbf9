// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/page_news.h"

#include <algorithm>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/known_operations.h"

namespace muster {

PageNews read_news(const UniqueFd& page) {
  PageNews news;
  const auto content = worker_page::read_page(page.get());
  if (!content) return news;
  const int64_t now_ns = page_now_ns();
  const worker_page::PageProgress& told = content->progress;
  news.progress.step = told.step;
  news.progress.steps = told.total;
  news.progress.loss = told.loss;
  if (told.heartbeat_ns > 0) {
    news.heartbeat_age_us = std::max<int64_t>(0, now_ns - told.heartbeat_ns) / 1000;
  }
  for (const auto& [name, value] : told.values)
    news.values.emplace_back(clean_line(name), value);
  if (!content->communicators.empty()) {
    news.operations = std::make_shared<const RankOperations>(operations_of(*content, now_ns));
  }
  return news;
}

}  // namespace muster
