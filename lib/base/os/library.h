// Shared libraries that are opened at run time. They stay open until the process ends.
#pragma once

#include <filesystem>
#include <string>

namespace clnet::os {

/// Opens one, whose symbols later ones may use. Null where that fails, with the system's reason in `error`.
void* open_library(const std::filesystem::path& path, std::string& error);
/// What the library exports by this name, or null.
void* symbol_of(void* library, const char* name);
/// The same of all that is loaded.
void* loaded_symbol(const char* name);

}  // namespace clnet::os
