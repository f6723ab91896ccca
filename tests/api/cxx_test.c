/* The installed header is a C++17 header too. */
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>

TEST(the_header_compiles_as_cxx17)
{
    char command[4096];
    if (system("c++ --version > /dev/null 2>&1") != 0)
        test_skip("no C++ compiler");
    snprintf(command, sizeof command,
             "echo '#include \"gyre.h\"\nint main() { gyre_put_options o; "
             "gyre_put_options_init(&o); return 0; }' | "
             "c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "
             "-I'" GYRE_SOURCE_DIR "/api' -I'" GYRE_SOURCE_DIR "/engine/base' -");
    CHECK(system(command) == 0);
}
