// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/http_server.h"
#include "loop/result.h"
#include "supervisor/browse/merged.h"

namespace muster {

// The forms of /api/v1/merged (docs/api.md). Pure.

// "after:TIME.RANK.STREAM.OFFSET", "before:...": lines from a place in one way.
std::string merged_cursor(MergedQuery::Way way, const MergedPlace& place);
bool read_merged_cursor(std::string_view text, MergedQuery& query);

// What a request asks for: one of cursor=, time=, before=, tail=, or the beginning. The error's
// code is an HTTP status.
Result<MergedQuery> merged_query(const HttpServerRequest& request);

// A page that is put together from those of several nodes.
struct MergedAnswer {
  MergedPage page;
  std::vector<std::string> unreachable;  // hosts whose lines are missing
};

// Of the parts' lines those next to the query's place, in order: not beyond what each part is
// known to be complete up to.
MergedPage join_merged(const MergedQuery& query, std::vector<MergedPage> parts);

std::string write_merged(const MergedQuery& query, const MergedAnswer& answer);
// Reads back what write_merged() wrote elsewhere; nothing if it did not.
std::optional<MergedPage> read_merged_answer(std::string_view text, const MergedQuery& query);

}  // namespace muster
