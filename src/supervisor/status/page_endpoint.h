// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// The files of the page (page_files.h), as the build compressed them.
void handle_page_file(StatusContext& context, StatusCall call);

// What asks once more for a page that was refused (access.h).
void handle_ask_again(StatusContext& context, StatusCall call);

}  // namespace muster
