#include "lib/base/os/library.h"

#include <dlfcn.h>

namespace clnet::os {

void* open_library(const std::filesystem::path& path, std::string& error) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const char* reason = ::dlerror();
    error = reason ? reason : "the system gives no reason";
  }
  return library;
}

void* symbol_of(void* library, const char* name) { return ::dlsym(library, name); }

void* loaded_symbol(const char* name) { return ::dlsym(RTLD_DEFAULT, name); }

}  // namespace clnet::os
