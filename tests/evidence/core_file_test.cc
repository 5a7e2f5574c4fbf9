// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/core_file.h"

#include <doctest/doctest.h>

#include "diagnosis/run_program.h"

namespace muster {

TEST_CASE("a dump of memory is found by the kernel's pattern") {
  TestFolder folder;
  const std::string path = folder.write("core.python3.4711", "x");
  CHECK(core_of("core.%e.%p\n", 4711, true, folder.path(), 1) == path);
  CHECK(core_of(folder.path() + "/core.%e.%p", 4711, true, "/nonexistent", 1) == path);
  CHECK(core_of("core.%e.%p", 471, true, folder.path(), 1) == "");
  CHECK(core_of("%%core.%p", 4711, true, folder.path(), 1) == "");
  const std::string plain = folder.write("core", "x");
  CHECK(core_of("core\n", 4711, true, folder.path(), 1) == plain);
  CHECK(core_of("", 4711, true, folder.path(), 1) == plain);
}

TEST_CASE("a dump from before the worker's start is another's") {
  TestFolder folder;
  (void)folder.write("core.7", "x");
  CHECK(core_of("core.%p", 7, true, folder.path(), 1) != "");
  CHECK(core_of("core.%p", 7, true, folder.path(), int64_t{1} << 40) == "");
}

TEST_CASE("a dump that may be another rank's is nobody's") {
  TestFolder folder;
  const std::string path = folder.write("core.python3.7", "x");
  CHECK(core_of("core.%e.%P", 7, true, folder.path(), 1) == path);
  CHECK_MESSAGE(core_of("core.%e.%P", 3, true, folder.path(), 1) == "", "it has another pid");
  CHECK_MESSAGE(core_of("core.%e.%P", 3, false, folder.path(), 1) == path, "the only one");
  (void)folder.write("core.python3.8", "x");
  CHECK(core_of("core.%e.%P", 7, true, folder.path(), 1) == path);
  CHECK(core_of("core.%e.%P", 3, false, folder.path(), 1) == "");
  CHECK_MESSAGE(core_of("core.%e", 7, true, folder.path(), 1) == path, "the kernel added its pid");
}

TEST_CASE("a folder's name is taken as it is") {
  TestFolder folder;
  const std::string path = folder.write("a[1]*/core.7", "x");
  CHECK(core_of("core.%p", 7, true, folder.file("a[1]*"), 1) == path);
  CHECK(core_of("core.%", 7, true, folder.file("a[1]*"), 1) == "");
}

TEST_CASE("a dump that was given to a program is told with it") {
  CHECK(core_of("|/lib/systemd/systemd-coredump %P %u %g", 7, true, "/", 1) ==
        "coredumpctl info 7");
  CHECK(core_of("|/usr/share/apport/apport -p%p", 7, true, "/", 1) ==
        "given to /usr/share/apport/apport");
  CHECK(core_of("|", 7, true, "/", 1) == "given to ");
}

}  // namespace muster
