# What every part of capo is built with: language level, warnings, sanitizers, and the include root.
#
# Headers lie beside their sources and are included from the root of the repository, as
# "core/order/schedule.h", so that an editor can follow them in a fresh clone. They are installed under
# include/capo, where consumers write <capo/core/order/schedule.h>.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# ccache keeps what is compiled with a precompiled header only where it is told that macros and time stamps of the header
# may differ, which they do not here, and where the header stands as a line in what it reads.
find_program(CAPO_CCACHE ccache)
if(CAPO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CAPO_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CAPO_CCACHE})
endif()

add_library(capo_options INTERFACE)
target_compile_features(capo_options INTERFACE cxx_std_20)
if(CAPO_CCACHE)
  target_compile_options(capo_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
# g++ collects its garbage from 128 MB on; from 1 GB on a large file takes an eighth less time, and up to 2 GB of memory.
target_compile_options(capo_options INTERFACE
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)
set(capo_warnings -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# Designated initialisers leave out what has a default on purpose; g++ 12 warns all the same.
list(APPEND capo_warnings -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # What g++ 12's optimiser believes of std::string and std::variant is often false (GCC bug 105651 and
  # its kin); clang and the sanitizers watch the same.
  list(APPEND capo_warnings -Wno-restrict -Wno-free-nonheap-object -Wno-maybe-uninitialized
       -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
if(CAPO_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A source looks like a header where another file includes it.
  list(APPEND capo_warnings -Wno-subobject-linkage)
endif()
if(CAPO_WERROR)
  list(APPEND capo_warnings -Werror)
endif()
target_compile_options(capo_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${capo_warnings}>)
if(CAPO_SANITIZE)
  target_compile_options(capo_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CAPO_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  target_link_options(capo_options INTERFACE -fsanitize=${CAPO_SANITIZE})
endif()

# capo_include_root(<target> <scope>): what its includes are looked up in. Installed headers include each
# other as they do here, so include/capo is a root there, beside include for the consumer's own lines.
function(capo_include_root target scope)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/capo>)
endfunction()

# capo_unity(<target> [<fewest>]): with CAPO_UNITY the target's files are compiled a folder at a time, and folders of fewer
# files than that in one, so that headers are read and templates compiled once for eighty files at most. Names in anonymous
# namespaces must differ then within what is compiled together; a file whose names do not is kept out by capo_apart() or
# capo_alone().
function(capo_unity target)
  if(NOT CAPO_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(FILTER sources EXCLUDE REGEX "TARGET_OBJECTS")
  list(TRANSFORM sources REPLACE "^([^/])" "${folder}/\\1")
  list(TRANSFORM sources REPLACE "/[^/]*$" "" OUTPUT_VARIABLE folders)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH group)
    set(neighbours ${folders})
    list(FILTER neighbours INCLUDE REGEX "^${group}$")
    list(LENGTH neighbours count)
    if(ARGC GREATER 1 AND count LESS ARGV1)
      set(group small)
    endif()
    get_property(apart GLOBAL PROPERTY "capo_apart_${source}")
    string(MD5 key "${group} ${apart}")
    math(EXPR count_${key} "${count_${key}} + 1" OUTPUT_FORMAT DECIMAL)
    math(EXPR part "${count_${key}} / 80" OUTPUT_FORMAT DECIMAL)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${key}_${part}")
  endforeach()
endfunction()

# capo_alone(<sources>): files that share a name with a neighbour, and are compiled by themselves.
function(capo_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# capo_apart(<number> <sources>): files that share a name with a neighbour, and none with one another: those of a folder
# are compiled together, apart from the rest of it and from those of another number.
function(capo_apart number)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source)
    set_property(GLOBAL PROPERTY "capo_apart_${source}" ${number})
  endforeach()
endfunction()

# {fmt} as the product links it: the distribution's shared library, or its headers alone, so that what is built is
# complete in itself.
set(CAPO_FMT fmt::fmt)
if(CAPO_SELF_CONTAINED)
  set(CAPO_FMT fmt::fmt-header-only)
endif()

# capo_self_contained(<target>): with CAPO_SELF_CONTAINED a program or module needs no C++ runtime where it is installed.
function(capo_self_contained target)
  if(CAPO_SELF_CONTAINED)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# capo_compiled_fast(<target>): for what runs once a command, and for tests. g++ takes 0.6 of the time of -O3 for -Og, less
# than for -O0, which leaves more to assemble; -O1 takes 0.7.
function(capo_compiled_fast target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Og>)
endfunction()

# capo_library(core <sources>): the static library capo_core, alias capo::core. Its code can be part of a shared object,
# such as Python's module, which exports none of it; hidden names keep it as fast as that of a program.
#
# Files that match SELDOM run once a command. They are a part of the library that is compiled fast, capo_core_seldom. The
# caller gives each target of ${capo_parts_of_core} what its files need.
function(capo_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "SELDOM" "")
  set(sources ${library_UNPARSED_ARGUMENTS})
  set(parts capo_${name})
  if(library_SELDOM)
    set(seldom ${sources})
    list(FILTER seldom INCLUDE REGEX "${library_SELDOM}")
    list(REMOVE_ITEM sources ${seldom})
    add_library(capo_${name}_seldom OBJECT ${seldom})
    capo_compiled_fast(capo_${name}_seldom)
    list(APPEND sources $<TARGET_OBJECTS:capo_${name}_seldom>)
    list(APPEND parts capo_${name}_seldom)
  endif()
  add_library(capo_${name} STATIC ${sources})
  add_library(capo::${name} ALIAS capo_${name})
  set_target_properties(capo_${name} PROPERTIES EXPORT_NAME ${name})
  foreach(part IN LISTS parts)
    set_target_properties(${part} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_link_libraries(${part} PRIVATE $<BUILD_INTERFACE:capo_options>)
    target_compile_features(${part} PUBLIC cxx_std_20)
    capo_include_root(${part} PUBLIC)
    capo_unity(${part} 12)
  endforeach()
  set(capo_parts_of_${name} ${parts} PARENT_SCOPE)
endfunction()

# capo_precompile(<target> <headers>): heavy headers of most of a target's files, read once. Files that are
# compiled together (capo_unity(), called before) need none; builds without CAPO_PRECOMPILE see whether each file includes what it needs.
function(capo_precompile target)
  get_target_property(together ${target} UNITY_BUILD)
  if(CAPO_PRECOMPILE AND NOT together)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# What nearly every file of the product reads.
set(CAPO_COMMON_HEADERS <algorithm> <functional> <map> <memory> <optional> <string> <variant> <vector> <fmt/format.h>)

# capo_embed(<output.cpp> <symbol> <namespace> <files>): texts compiled into a table of
# {stem, text}, so that `capo explain` needs no file at run time. Texts over the limit of a string
# literal do not occur; a file that holds the delimiter stops the build.
function(capo_embed output symbol)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${symbol} "-DFILES=${ARGN}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_texts.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_texts.cmake
    VERBATIM)
endfunction()
