# How every Pawl target is compiled, and the three functions that declare one.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# No NDEBUG: assertions stay on in production. Optimising sanitized code takes long, and it runs only briefly.
if(PAWL_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
else()
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

find_program(PAWL_CCACHE ccache)
if(PAWL_CCACHE)
  # Paths relative to the tree, so that a second clone finds what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR}"
                                  CCACHE_NOHASHDIR=1)
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${PAWL_CCACHE}")
endif()
find_program(PAWL_MOLD mold)
if(PAWL_MOLD AND NOT PAWL_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

if(PAWL_SANITIZE)
  add_compile_options(-fsanitize=${PAWL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PAWL_SANITIZE})
endif()
if(PAWL_MUTANTS)
  add_compile_definitions(PAWL_MUTANTS)
endif()
if(PAWL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# pawl_warnings(target): the warnings our own code is held to.
function(pawl_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                                           -Wold-style-cast -Woverloaded-virtual)
  if(PAWL_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(PAWL_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 with sanitizers sees uninitialised strings in every std::variant; the sanitizers themselves know better.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
endfunction()

# pawl_library(name SOURCES a.cc … DEPS other … [HOT]): the library of one folder of src/. HOT: every request passes
# through it, so its files are compiled one by one: in large units the compiler inlines less.
function(pawl_library name)
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;DEPS" ${ARGN})
  add_library(pawl_${name} STATIC ${ARG_SOURCES})
  target_include_directories(pawl_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(pawl_${name} PUBLIC ${ARG_DEPS})
  pawl_warnings(pawl_${name})
  if(ARG_HOT)
    set_target_properties(pawl_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()

# pawl_executable(name SOURCES a.cc … DEPS other …): a binary in build/bin/.
function(pawl_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  pawl_warnings(${name})
endfunction()

# pawl_test_options(target): optimising tests takes longer than running them (lists of strings, in a function that frees each
# of them on every way out); and what is tested is to be sanitized, not the tests' own arithmetic.
function(pawl_test_options target)
  target_compile_options(${target} PRIVATE -O0)
  if(PAWL_SANITIZE MATCHES undefined)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
endfunction()

# pawl_test(name SOURCES a_test.cc … DEPS other … [LABELS l …] [TIMEOUT s]): one GoogleTest binary, one ctest entry.
function(pawl_test name)
  if(NOT PAWL_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  pawl_executable(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  pawl_test_options(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
