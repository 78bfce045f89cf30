# Chooses the host C++ compiler, before project(): the one asked for, else the system's, else the
# one in the ziglang package, which the device code needs anyway. Nothing for the user to do.
#
# JAX_FA_HOST_TARGET names a machine and the oldest glibc to run on ("aarch64-linux-gnu.2.28"): then
# ziglang's it is, which has the symbol versions and start files of every glibc and machine in it.

# Sets `out` to the folder of an importable package, without importing it.
function(jax_fa_package_folder package out)
  if(NOT Python_EXECUTABLE)
    find_program(Python_EXECUTABLE NAMES python3 python REQUIRED)
  endif()
  execute_process(
      COMMAND "${Python_EXECUTABLE}" -c
              "import importlib.util; print(*importlib.util.find_spec('${package}').submodule_search_locations)"
      OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the Python package ${package} is needed to build jax_fa; ${Python_EXECUTABLE} "
                        "does not have it (pyproject.toml lists the build requirements)")
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
  set(Python_EXECUTABLE "${Python_EXECUTABLE}" PARENT_SCOPE)
endfunction()

# Sets `out` to whether `command` makes a program from C++20 with the library's newer headers.
function(jax_fa_compiles_cxx20 command out)
  set(source "${CMAKE_BINARY_DIR}/host-compiler/probe.cc")
  file(WRITE "${source}" "#include <bit>\n#include <span>\n#include <string>\n"
       "int main(int n, char** v) { return std::span(v, n).size() + std::popcount(0u) == 0; }\n")
  separate_arguments(command UNIX_COMMAND "${command}")
  execute_process(COMMAND ${command} -std=c++20 "${source}" -o "${source}.out"
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Programs in the build folder that stand for the parts of ziglang, since CMake wants one path each.
# -mcpu=baseline: zig compiles for the building machine's own CPU otherwise. The cache falls back to
# the build folder where there is no writable home.
function(jax_fa_zig_program name command)
  jax_fa_package_folder(ziglang zig_folder)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/host-compiler/${name}" CONTENT [[#!/bin/sh
if [ -z "$ZIG_GLOBAL_CACHE_DIR" ] && ! [ -w "${HOME:-/nonexistent}" ]; then
  export ZIG_GLOBAL_CACHE_DIR="@CMAKE_BINARY_DIR@/zig-cache"
fi
exec "@zig_folder@/zig" @command@ "$@"
]] @ONLY)
  file(CHMOD "${CMAKE_BINARY_DIR}/host-compiler/${name}" PERMISSIONS
       OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()

# Makes ziglang the host compiler. A macro: project() reads these variables where it is called.
macro(jax_fa_use_zig)
  jax_fa_zig_program(c++ "c++ ${JAX_FA_ZIG_TARGET} -mcpu=baseline -fno-sanitize=undefined \${JAX_FA_COMPILE_ONLY:+-c}")
  jax_fa_zig_program(ar ar)
  jax_fa_zig_program(ranlib ranlib)
  set(JAX_FA_HOST_IS_ZIG TRUE CACHE INTERNAL "")
  # Nothing is to be linked while CMake finds out about the compiler: see jax_fa_zig_library.
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(ENV{JAX_FA_COMPILE_ONLY} 1)
  set(CMAKE_CXX_COMPILER "${CMAKE_BINARY_DIR}/host-compiler/c++" CACHE FILEPATH "host C++ compiler")
  set(CMAKE_AR "${CMAKE_BINARY_DIR}/host-compiler/ar" CACHE FILEPATH "archiver")
  set(CMAKE_RANLIB "${CMAKE_BINARY_DIR}/host-compiler/ranlib" CACHE FILEPATH "archive indexer")
endmacro()

if(JAX_FA_HOST_TARGET)
  # Another machine than this one: CMake then runs nothing that it has built.
  string(REGEX MATCH "^[^-]+" host_target_processor "${JAX_FA_HOST_TARGET}")
  cmake_host_system_information(RESULT building_processor QUERY OS_PLATFORM)
  if(NOT host_target_processor STREQUAL building_processor)
    set(CMAKE_SYSTEM_NAME Linux)
    set(CMAKE_SYSTEM_PROCESSOR "${host_target_processor}")
  endif()
  if(NOT CMAKE_CXX_COMPILER)
    set(JAX_FA_ZIG_TARGET "-target ${JAX_FA_HOST_TARGET}")
    jax_fa_use_zig()
  endif()
elseif(NOT CMAKE_CXX_COMPILER)
  # scikit-build-core sets CXX to what Python was built with, on machines without it too, so a CXX
  # that does not work is no wish of the user's.
  set(usable FALSE)
  if(DEFINED ENV{CXX})
    jax_fa_compiles_cxx20("$ENV{CXX}" usable)  # CMake then takes it from there, arguments and all
  endif()
  foreach(name IN ITEMS c++ g++ clang++)
    if(NOT usable)
      unset(system_cxx)
      find_program(system_cxx NAMES ${name} NO_CACHE)
      if(system_cxx)
        jax_fa_compiles_cxx20("${system_cxx}" usable)
        if(usable)
          set(CMAKE_CXX_COMPILER "${system_cxx}" CACHE FILEPATH "host C++ compiler")
        endif()
      endif()
    endif()
  endforeach()
  if(NOT usable)
    message(STATUS "No system compiler for C++20: ziglang compiles the host code too")
    jax_fa_use_zig()
  endif()
endif()
