// What all checkpoints have in common.
#pragma once

#include <filesystem>

#include "lib/exec/choose/choices.h"

namespace clnet::io {

/// Makes later plans with a checkpoint's choices; warns where they are of another device or driver.
void follow_choices(const std::filesystem::path& path, exec::StoredChoices choices);

}  // namespace clnet::io
