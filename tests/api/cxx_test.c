/* The installed header is a C++17 header too. */
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(the_header_compiles_as_cxx17)
{
    char root[1024], command[4096];
    if (system("c++ --version > /dev/null 2>&1") != 0)
        test_skip("no C++ compiler");
    snprintf(root, sizeof root, "%s", __FILE__);
    char *end = strstr(root, "/tests/api/");
    CHECK(end != NULL);
    *end = '\0';
    snprintf(command, sizeof command,
             "echo '#include \"gyre.h\"\nint main() { gyre_put_options o; "
             "gyre_put_options_init(&o); return 0; }' | "
             "c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I'%s/api' "
             "-I'%s/engine/base' -",
             root, root);
    CHECK(system(command) == 0);
}
