// libFuzzer: checkpoints. Each is given the right check sum first, or nothing behind that would ever be reached.
#include "lib/train/checkpoint.h"

#include <filesystem>

#include "clnet/clnet.h"
#include "tests/readers/input.h"
#include "tests/support/temporary.h"

using namespace clnet;

CLNET_READER(checkpoint) {
  static const clnet::test::Folder folder;
  static const train::Checkpoint checkpoint(folder.path(),
                                            {.batch_size = 8, .samples = 24, .dataset = "d", .normalization = "n"});
  static nn::Sequential model{nn::Linear{2, 1}};
  static optim::Optimizer optimizer = optim::SGD(model, {});
  const clnet::test::MemoryFile file(data, size);
  try {
    auto content = io::load_safetensors(file.path());
    content.metadata["checksum"] = train::checkpoint_checksum(content.tensors, content.metadata);
    io::save_safetensors(folder / "checkpoint.safetensors", content.tensors, content.metadata);
    const auto position = checkpoint.load(model, optimizer);
    if (position.steps < 0 || position.epochs < 0 || position.epoch_steps > 3) std::abort();
  } catch (const FileError&) {
  }
  return 0;
}
