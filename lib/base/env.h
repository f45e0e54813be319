// The environment variables that clnet reads, in one table (`clnet-info --env` prints it). Nothing else asks for one of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clnet::env {

struct Variable {
  std::string_view name, values, meaning;
  /// Throws Error when the value is none of `values`. Null: no value is refused here.
  void (*check)(std::string_view name) = nullptr;
};

/// Every variable that clnet reads.
std::span<const Variable> table();

/// Throws Error for the first variable with a value that it cannot have, whatever it is that uses it, and for one with a name
/// from before (lib/base/renames.txt). Called before devices are looked for, so that no mistake goes unnoticed.
void check();
/// Another check, of a variable whose values a higher floor knows. To be called before main(), by static initializers.
void check_also(void (*other)());

/// The value, or nothing when unset or empty. `name` must be in the table.
std::optional<std::string> text(std::string_view name);
/// Throws Error, naming variable and value, when it is not an integer from `least` to `most`.
std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most);
/// 0 or 1; `unset` when unset. Throws Error for anything else.
bool flag(std::string_view name, bool unset = false);
/// One of the words, or nothing when unset. Throws Error for anything else.
std::optional<std::string> word(std::string_view name, std::initializer_list<std::string_view> words);
/// A size in bytes: `512M`, `2G`, `1000000`. Throws Error when it is not one.
std::optional<std::size_t> bytes(std::string_view name);
/// The folder for caches: CLNET_CACHE_DIR, else $XDG_CACHE_HOME/clnet, else ~/.cache/clnet. It need not exist. Nothing when none
/// of the variables is set.
std::optional<std::string> cache_folder();
/// The folder of a driver's compiled programs, and the variable that sets it.
struct DriverCache {
  std::string driver, variable, folder;
};
std::vector<DriverCache> driver_caches();

}  // namespace clnet::env
