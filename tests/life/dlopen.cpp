// A host program that knows nothing of clnet loads a plug-in that uses it, and drops it again, three times.
#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  for (int round = 0; round < 3; ++round) {
    void* plugin = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
      std::fprintf(stderr, "dlopen: %s\n", ::dlerror());
      return 1;
    }
    auto* use = reinterpret_cast<int (*)()>(::dlsym(plugin, "use_clnet"));
    if (!use || use() != 0) return 2;
    if (::dlclose(plugin) != 0) return 3;
  }
  return 0;
}
