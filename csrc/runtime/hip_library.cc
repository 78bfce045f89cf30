// JAX opens the plugin with local scope, and the plugin brings its HIP library along: no global
// lookup sees that, and a lookup by SONAME finds whichever file of that name came first. So the
// library is found through the plugin, whose dependencies dlsym() searches in the order in which
// the plugin's own calls were bound.
#include "runtime/hip_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace jax_fa {
namespace {

// A function that every HIP library has.
constexpr const char* kHipFunction = "hipModuleLaunchKernel";
// What a plugin of PJRT, XLA's interface to frameworks, exports.
constexpr const char* kPluginFunction = "GetPjrtApi";

// The file that holds an address; empty: none does.
std::string FileOf(const void* address) {
  Dl_info info;
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

// The file that defines `function` for a loaded file: itself or one that it depends on.
std::string Definer(const std::string& file, const char* function) {
  void* const library = dlopen(file.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return {};
  const std::string definer = FileOf(dlsym(library, function));
  dlclose(library);
  return definer;
}

std::vector<std::string> LoadedFiles() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* files) {
        const std::string_view file = info->dlpi_name;  // empty: the program itself
        if (!file.empty()) static_cast<std::vector<std::string>*>(files)->emplace_back(file);
        return 0;
      },
      &files);
  return files;
}

// libamdhip64.so.7, whichever its version.
bool IsNamedHip(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.starts_with("libamdhip64") && name.find(".so") != std::string_view::npos;
}

std::string Joined(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : " and ") + file;
  return text;
}

}  // namespace

Status FindHipLibrary(const void* xla, std::string* file) {
  if (const std::string caller = FileOf(xla); !caller.empty()) {
    *file = Definer(caller, kHipFunction);
    if (!file->empty()) return Status::Ok();
  }
  std::vector<std::string> of_plugins, named;
  const auto add = [](const std::string& one, std::vector<std::string>* all) {
    if (!one.empty() && std::ranges::find(*all, one) == all->end()) all->push_back(one);
  };
  for (const std::string& loaded : LoadedFiles()) {
    if (IsNamedHip(loaded)) add(loaded, &named);
    if (Definer(loaded, kPluginFunction) == loaded) add(Definer(loaded, kHipFunction), &of_plugins);
  }
  const std::vector<std::string>& found = of_plugins.empty() ? named : of_plugins;
  if (found.size() == 1) {
    *file = found.front();
    return Status::Ok();
  }
  if (found.empty()) {
    return Status::Error(
        "the HIP library (libamdhip64.so) is not loaded in this process; it comes with JAX's ROCm "
        "plugin: pip install 'jax_fa[rocm]', and jax-fa check says what is missing");
  }
  return Status::Error("more than one HIP library is loaded, " + Joined(found) +
                       ", and which of them is XLA's cannot be known; leave one: look at "
                       "LD_LIBRARY_PATH, LD_PRELOAD and the installed jax-rocm plugins");
}

}  // namespace jax_fa
