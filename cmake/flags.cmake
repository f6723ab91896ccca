# Warnings, sanitizers, and helpers that every folder uses.

add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
                    -Wvla)
add_compile_definitions(_GNU_SOURCE _FILE_OFFSET_BITS=64)
if(GYRE_SIM)
  add_compile_definitions(GYRE_SIM=1)
endif()

set(GYRE_FUZZER OFF)
if(GYRE_SANITIZE)
  string(REPLACE "," ";" sanitizers "${GYRE_SANITIZE}")
  if("fuzzer" IN_LIST sanitizers)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
      message(FATAL_ERROR "GYRE_SANITIZE=fuzzer needs clang: configure with CC=clang")
    endif()
    set(GYRE_FUZZER ON)
    list(TRANSFORM sanitizers REPLACE "^fuzzer$" "fuzzer-no-link")
  endif()
  list(JOIN sanitizers "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitizers})
endif()

# gyre_sources(OUT pattern...): the files that match, below the calling folder; a new file is noticed at the next build.
function(gyre_sources out)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  file(GLOB found CONFIGURE_DEPENDS ${ARGN})
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Includes are written from the root. engine/base and api are there for the installed headers alone, which name each other
# without a folder because they are installed side by side.
set(GYRE_INCLUDES "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/engine/base" "${PROJECT_SOURCE_DIR}/api")

# gyre_programs(PREFIX LIBRARY pattern...): one executable PREFIX_NAME for each file; their names in GYRE_PROGRAMS.
# Nothing is built as long as LIBRARY has no sources.
function(gyre_programs prefix library)
  set(made "")
  if(TARGET ${library})
    gyre_sources(files ${ARGN})
    foreach(file IN LISTS files)
      cmake_path(GET file STEM name)
      set(program ${prefix}_${name})
      add_executable(${program} ${file})
      set_target_properties(${program} PROPERTIES OUTPUT_NAME ${name})
      target_include_directories(${program} PRIVATE ${GYRE_INCLUDES})
      target_link_libraries(${program} PRIVATE ${library} OpenSSL::Crypto Threads::Threads)
      list(APPEND made ${program})
    endforeach()
  endif()
  set(GYRE_PROGRAMS "${made}" PARENT_SCOPE)
endfunction()
