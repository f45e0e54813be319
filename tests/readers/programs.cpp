// libFuzzer: built programs that earlier runs kept on the disk. Each is also given the right check sum, or nothing behind that
// would ever be reached. Damaged files are ignored, never an error.
#include "clnet/clnet.h"
#include "lib/base/hash.h"
#include "lib/cl/disk_cache.h"
#include "tests/readers/input.h"
#include "tests/support/temporary.h"

CLNET_READER(programs) {
  static const clnet::test::Folder folder;
  static const clnet::ocl::DiskCache cache(folder.path());
  constexpr std::string_view key = "key";
  static const auto name = std::filesystem::path(cache.path(key)).filename().string();
  std::string content(reinterpret_cast<const char*>(data), size);
  for (const bool is_sound : {false, true}) {
    if (is_sound) {
      const auto sum = clnet::Hash().add(content).value();
      for (int i = 0; i < 8; ++i) content.push_back(static_cast<char>(static_cast<unsigned char>(sum >> (8 * i))));
    }
    folder.write(name, content);
    if (const auto found = cache.load(key); found && found->size() + key.size() > content.size()) std::abort();
  }
  return 0;
}
