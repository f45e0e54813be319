// libFuzzer: files of io::save_checkpoint(). Each is given the right check sum first, or nothing behind that would ever be
// reached.
#include <filesystem>

#include "clnet/clnet.h"
#include "lib/io/checksum.h"
#include "tests/readers/input.h"
#include "tests/support/temporary.h"

using namespace clnet;

CLNET_READER(parts) {
  static const clnet::test::Folder folder;
  static nn::Sequential model{nn::Linear{2, 1}};
  static std::int64_t step = 0;
  static double rate = 0;
  const clnet::test::MemoryFile file(data, size);
  try {
    auto content = io::load_safetensors(file.path());
    content.metadata["clnet.checksum"] = io::checkpoint_checksum(content.tensors, content.metadata, "clnet.checksum");
    io::save_safetensors(folder / "run.safetensors", content.tensors, content.metadata);
    io::load_checkpoint(folder / "run.safetensors", {{"model", model}, {"step", step}, {"rate", rate}});
  } catch (const FileError&) {
  }
  return 0;
}
