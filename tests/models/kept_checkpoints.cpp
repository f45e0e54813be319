// Checkpoints of each version are read; an unknown version is one line. tests/unit/formats.cpp has files that need no device.
#include <catch2/catch.hpp>
#include <filesystem>

#include "clnet/checkpoint.h"
#include "clnet/nn.h"
#include "clnet/optim.h"
#include "lib/base/file.h"
#include "lib/train/checkpoint.h"
#include "tests/support/captured.h"
#include "tests/support/kept_file.h"
#include "tests/support/temporary.h"

using namespace clnet;
using Catch::Contains;

TEST_CASE("kept checkpoints are read, and an unknown version is one line") {
  const test::Folder folder;
  nn::Linear model(2, 1);
  optim::Adam adam(model, 1e-3);
  std::int64_t step = 7;
  const auto parts = test::kept_file("parts-1.safetensors", [&](const std::filesystem::path& path) {
    io::save_checkpoint(path, {{"model", model}, {"optimizer", adam}, {"step", step}});
  });
  step = 0;
  (void)test::written_on_stderr([&] {  // perhaps that it is of another device
    io::load_checkpoint(folder.write("parts", parts), {{"model", model}, {"optimizer", adam}, {"step", step}});
  });
  CHECK(step == 7);
  CHECK_THROWS_WITH(io::load_checkpoint(folder.write("newer", test::replaced(parts, "parts 1", "parts 9")), {{"step", step}}),
                    Contains("newer: is a checkpoint of the format 'parts 9', expected 'parts 1'"));

  train::RunSettings settings;
  settings.batch_size = 4;
  settings.samples = 8;
  const auto whole = test::kept_file("checkpoint-2.safetensors", [&](const std::filesystem::path& path) {
    train::Position position;
    position.steps = 3;
    position.epochs = 1;
    position.epoch_steps = 1;
    train::Checkpoint(folder / "made", settings).save(position, model, adam);
    file::replace(path, test::content(folder / "made/checkpoint.safetensors"));
  });
  const train::Checkpoint checkpoint(folder / "run", settings);
  const auto path = folder / "run/checkpoint.safetensors";
  file::replace(path, whole);
  (void)test::written_on_stderr([&] { CHECK(checkpoint.load(model, adam).steps == 3); });
  file::replace(path, test::replaced(whole, "clnet checkpoint 2", "clnet checkpoint 9"));
  CHECK_THROWS_WITH(checkpoint.load(model, adam), Contains("checkpoint.safetensors: ") && Contains("clnet checkpoint 9"));
}
