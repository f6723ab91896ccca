/* The version of the library that was linked, which may be newer than the header somebody was
 * compiled with. */
#include "api/gyre.h"

#define API_TEXT(x) #x
#define API_VERSION(major, minor, patch) API_TEXT(major) "." API_TEXT(minor) "." API_TEXT(patch)

const char *gyre_version(void)
{
    return API_VERSION(GYRE_VERSION_MAJOR, GYRE_VERSION_MINOR, GYRE_VERSION_PATCH);
}
