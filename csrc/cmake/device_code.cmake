# Device code: every csrc/kernels/*.hip for every target, one code object a target, embedded. The
# sources of a target are one translation unit: linking several would leave several metadata notes in
# the code object, of which loaders read one.
#
# The targets are those that have a csrc/kernels/mainloop/<target>/mainloop.h. The compiler is the
# pinned ziglang's clang on every machine, so that users run byte for byte what the tests ran. Where
# JAX_FA_CODE_OBJECTS names a folder, its <target>.co are embedded and nothing is compiled: no host
# changes a byte of them, so builds for several hosts share one. Sets JAX_FA_CODE_OBJECT_SOURCES: the
# source files that hold the code objects.

if(JAX_FA_DEVICE_CXX)
  # The linker of the same LLVM: beside the compiler's real place.
  file(REAL_PATH "${JAX_FA_DEVICE_CXX}" device_cxx_file)
  cmake_path(GET device_cxx_file PARENT_PATH device_cxx_folder)
  find_program(JAX_FA_DEVICE_LD NAMES ld.lld HINTS "${device_cxx_folder}" REQUIRED)
  set(device_cxx "${JAX_FA_DEVICE_CXX}")
  set(device_ld "${JAX_FA_DEVICE_LD}")
else()
  jax_fa_package_folder(ziglang zig_folder)
  set(device_cxx "${zig_folder}/zig" clang)
  set(device_ld "${zig_folder}/zig" ld.lld)
endif()

include("${CMAKE_CURRENT_LIST_DIR}/device_options.cmake")
foreach(switch IN LISTS JAX_FA_DEVICE_SWITCHES)
  list(APPEND device_options "-D${switch}")
endforeach()
if(JAX_FA_GFX1201_WAVES STREQUAL "wgp")
  set(device_options_gfx1201 -mno-cumode)
elseif(JAX_FA_GFX1201_WAVES STREQUAL "cu")
  set(device_options_gfx1201 -mcumode)
else()
  message(FATAL_ERROR "JAX_FA_GFX1201_WAVES must be wgp or cu; got '${JAX_FA_GFX1201_WAVES}'")
endif()

set(kernels_folder "${CMAKE_CURRENT_SOURCE_DIR}/csrc/kernels")
file(GLOB kernel_sources CONFIGURE_DEPENDS "${kernels_folder}/*.hip")
file(GLOB mainloops CONFIGURE_DEPENDS "${kernels_folder}/mainloop/*/mainloop.h")
set(JAX_FA_CODE_OBJECT_SOURCES)

set(kernels_unit "${CMAKE_BINARY_DIR}/device/kernels.hip")
set(kernels_unit_text)
foreach(source IN LISTS kernel_sources)
  string(APPEND kernels_unit_text "#include \"${source}\"\n")
endforeach()
file(CONFIGURE OUTPUT "${kernels_unit}" CONTENT "${kernels_unit_text}" @ONLY)

function(jax_fa_compile_code_object target code_object)
  set(object "${CMAKE_BINARY_DIR}/device/${target}.o")
  add_custom_command(
      OUTPUT "${object}"
      COMMAND ${device_cxx} ${device_options} --offload-arch=${target} -DJAX_FA_TARGET=${target}
              ${device_options_${target}} -I "${CMAKE_CURRENT_SOURCE_DIR}/csrc"
              -Xclang -dependency-file -Xclang "${object}.d" -Xclang -MT -Xclang "${object}"
              "${kernels_unit}" -o "${object}"
      DEPENDS "${kernels_unit}" DEPFILE "${object}.d"
      COMMENT "Device code for ${target}" VERBATIM)
  add_custom_command(
      OUTPUT "${code_object}"
      COMMAND ${device_ld} -m elf64_amdgpu --no-undefined -shared "${object}" -o "${code_object}"
      DEPENDS "${object}" COMMENT "Code object ${target}" VERBATIM)
endfunction()

function(jax_fa_add_code_object target)
  set(code_object "${CMAKE_BINARY_DIR}/device/${target}.co")
  set(embedded "${CMAKE_BINARY_DIR}/device/${target}.cc")
  if(JAX_FA_CODE_OBJECTS)
    set(code_object "${JAX_FA_CODE_OBJECTS}/${target}.co")
  else()
    jax_fa_compile_code_object(${target} "${code_object}")
  endif()
  add_custom_command(
      OUTPUT "${embedded}"
      COMMAND "${CMAKE_COMMAND}" -DTARGET=${target} "-DCODE_OBJECT=${code_object}"
              "-DOUTPUT=${embedded}" -P "${CMAKE_CURRENT_SOURCE_DIR}/csrc/cmake/embed.cmake"
      DEPENDS "${code_object}" csrc/cmake/embed.cmake COMMENT "Embedding ${target}" VERBATIM)
  list(APPEND JAX_FA_CODE_OBJECT_SOURCES "${embedded}")
  set(JAX_FA_CODE_OBJECT_SOURCES "${JAX_FA_CODE_OBJECT_SOURCES}" PARENT_SCOPE)
endfunction()

# The list of what is embedded, for csrc/runtime/code_objects.cc.
set(code_objects_list "// JAX_FA_CODE_OBJECT(target) of each embedded code object.\n")
foreach(mainloop IN LISTS mainloops)
  cmake_path(GET mainloop PARENT_PATH target_folder)
  cmake_path(GET target_folder FILENAME target)
  jax_fa_add_code_object(${target})
  string(APPEND code_objects_list "JAX_FA_CODE_OBJECT(${target})\n")
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/device/list/code_objects.def"
     CONTENT "${code_objects_list}" @ONLY)
set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/csrc/runtime/code_objects.cc" PROPERTIES
                            INCLUDE_DIRECTORIES "${CMAKE_BINARY_DIR}/device/list")
message(STATUS "Device compiler: ${device_cxx}")
