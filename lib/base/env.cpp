#include "lib/base/env.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <vector>

#include "clnet/error.h"
#include "lib/base/renames.h"

namespace clnet::env {

namespace {

void check_flag(std::string_view name) { (void)flag(name); }
void check_bytes(std::string_view name) { (void)bytes(name); }
void check_level(std::string_view name) { (void)integer(name, 0, 4); }
void check_cache(std::string_view name) { (void)word(name, {"on", "off", "force"}); }
void check_processes(std::string_view name) { (void)integer(name, 1, 64); }
void check_switch(std::string_view name) { (void)word(name, {"on", "off"}); }
void check_batches(std::string_view name) { (void)word(name, {"auto", "off", "eager", "force"}); }
void check_width(std::string_view name) { (void)word(name, {"1", "4", "8", "16"}); }
void check_timeout(std::string_view name) { (void)integer(name, 1, 86400); }
void check_mpi(std::string_view name) {
  if (const auto value = text(name); !value || value->find('/') == std::string::npos)
    (void)word(name, {"openmpi", "mpich", "off", "a module's path"});
}
void check_folder(std::string_view name) {
  std::error_code code;
  if (const auto value = text(name); value && !std::filesystem::is_directory(*value, code))
    throw Error(fmt::format("{}={}: expected a folder", name, *value));
}
void check_tuning(std::string_view name) {
  const auto value = text(name);
  if (!value || *value == "on" || *value == "off") return;
  try {
    (void)integer(name, 1, 86400);
  } catch (const Error&) {
    throw Error(fmt::format("{}={}: expected on, off or seconds from 1 to 86400", name, *value));
  }
}

// The comments between the rows are headings of docs/guide/environment.md, which tools/dev/environment_page.py makes of this
// table.
constexpr std::array variables{
    // Devices and memory
    Variable{"CLNET_DEVICE", "gpu | cpu | accelerator | 0:1 | part of a name",
             "the device to use; unset: the best GPU, else accelerator, else CPU"},
    Variable{"CLNET_MEMORY_LIMIT", "bytes, as in 512M or 2G", "the most device memory to hold; unset: what the device has",
             check_bytes},
    // Compiled programs
    Variable{"CLNET_CACHE_DIR", "a folder",
             "where built programs and tuning results are kept; unset: $XDG_CACHE_HOME/clnet, else ~/.cache/clnet"},
    Variable{"CLNET_CACHE", "on | off | force",
             "whether built programs are kept on disk; force: also where the driver has a cache of its own", check_cache},
    Variable{"CLNET_BUILD_PROCESSES", "1 to 64",
             "processes that compile a plan's kernels where the driver compiles one at a time; unset: the cores, 8 at most",
             check_processes},
    Variable{
        "CLNET_COMPILE_APART", "0 | 1",
        "1: kernels are first compiled in processes of their own, and one that crashes the driver's compiler there is not used; "
        "unset: for drivers whose compiler is known to crash",
        check_flag},
    Variable{"CLNET_KERNEL_DIR", "a folder", "kernel files here take the place of the built-in ones of the same name",
             check_folder},
    // Logs, traces and debugging
    Variable{"CLNET_DEBUG", "0 to 4",
             "log lines on stderr: 1 devices, programs and plan misses; 2 a line per kernel; 3 choices of solvers; 4 sources",
             check_level},
    Variable{"CLNET_TRACE", "a file", "a Chrome trace (JSON) of all kernels and transfers, for Perfetto"},
    Variable{"CLNET_LAUNCH_BATCHES", "auto | off | eager | force",
             "where commands cost much, short launches of plans that run often become one; eager: from the first run on; force: "
             "whether it pays or not",
             check_batches},
    Variable{"CLNET_AWAKE", "0 | 1", "0: a driver's threads may all sleep between short calls that follow one another at once",
             check_flag},
    Variable{"CLNET_DRIVER_HABITS", "0 | 1",
             "0: commands go to the plain queue and kernels are built in this process, whatever the driver's habits, for "
             "debugging; where its compiler may end its process, kernels are still built apart",
             check_flag},
    Variable{"CLNET_EAGER", "0 | 1", "evaluate each operation at once, for debugging", check_flag},
    Variable{"CLNET_FUSION", "0 | 1", "0: a kernel for each operation, for debugging", check_flag},
    Variable{"CLNET_MEMORY_SHARING", "0 | 1", "0: a buffer for each value, nothing in place and nothing cached, for debugging",
             check_flag},
    Variable{"CLNET_VERIFY", "0 | 1",
             "1: check before each run that every launch finds its values where its arguments point; unset: in debug builds",
             check_flag},
    Variable{"CLNET_POISON", "0 | 1", "fill outputs and temporaries with NaN before a kernel writes them, for debugging",
             check_flag},
    // Choice of kernels
    Variable{"CLNET_VECTOR_WIDTH", "1 | 4 | 8 | 16",
             "use kernels for CPUs, with vectors of so many lanes, or on a CPU (1) those for GPUs; unset: what the device says",
             check_width},
    Variable{
        "CLNET_NONTEMPORAL_STORES_FROM", "bytes, as in 512M or 2G",
        "on CPUs, results of a kernel from so many bytes on are stored past the caches; unset: from the last cache's size on",
        check_bytes},
    Variable{"CLNET_WINOGRAD", "0 | 1", "0: convolutions of 3x3 are summed directly, which is slower and a little more accurate",
             check_flag},
    Variable{"CLNET_TF32", "0 | 1",
             "1: products of f32 may go to NVIDIA's matrix units, which round each factor to 10 bits of mantissa", check_flag},
    Variable{"CLNET_TUNE", "on | off | seconds",
             "on: measure solvers at first use, 5 s at most for each plan; off: do not even use what was measured before",
             check_tuning},
    Variable{"CLNET_QUIRKS", "on | off",
             "off: choose solvers as if clnet-info --self-test had found nothing wrong with the device", check_switch},
    Variable{"CLNET_SOLVER", "op:solver[,op:solver...]", "use this solver for an operation, as in matmul:direct"},
    // Several processes
    Variable{"CLNET_MPI", "openmpi | mpich | off | a module's path",
             "the MPI that joins processes; off: this one works alone; unset: the MPI that started it", check_mpi},
    Variable{"CLNET_DIST_TIMEOUT", "seconds, 1 to 86400",
             "how long a rank may be silent until the job ends; unset: 60. Slow ranks are not silent", check_timeout},
    // Data
    Variable{"CLNET_DATA_DIR", "a folder", "where data sets are looked for before the usual places"},
};

std::vector<void (*)()>& other_checks() {
  static std::vector<void (*)()> all;
  return all;
}

const char* lookup(std::string_view name) {
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == name; });
  if (found == variables.end()) throw Error(fmt::format("environment variable {} is not in clnet's table", name));
  return std::getenv(found->name.data());
}

}  // namespace

std::span<const Variable> table() { return variables; }

void check() {
  renames::check_variables();
  for (const Variable& variable : variables) {
    try {
      if (variable.check) variable.check(variable.name);
    } catch (const Error&) {
      const auto value = text(variable.name);
      const auto now = value ? renames::value(variable.name, *value) : std::nullopt;
      if (now) throw Error(fmt::format("{}={}: the value is called {} now", variable.name, *value, *now));
      throw;
    }
  }
  for (const auto& other : other_checks()) other();
}

void check_also(void (*other)()) { other_checks().push_back(other); }

std::optional<std::string> text(std::string_view name) {
  const char* value = lookup(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (code != std::errc() || end != value->data() + value->size() || number < least || number > most) {
    throw Error(fmt::format("{}={}: expected an integer from {} to {}", name, *value, least, most));
  }
  return number;
}

bool flag(std::string_view name, bool unset) {
  const auto value = word(name, {"0", "1"});
  return value ? *value == "1" : unset;
}

std::optional<std::string> word(std::string_view name, std::initializer_list<std::string_view> words) {
  auto value = text(name);
  if (!value || std::find(words.begin(), words.end(), *value) != words.end()) return value;
  std::string expected;
  for (const auto* it = words.begin(); it != words.end(); ++it) {
    expected += it == words.begin() ? "" : it + 1 == words.end() ? " or " : ", ";
    expected += *it;
  }
  throw Error(fmt::format("{}={}: expected {}", name, *value, expected));
}

std::optional<std::size_t> bytes(std::string_view name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto wrong = [&] {
    return Error(fmt::format("{}={}: expected a size in bytes, as in 1000000, 512M or 2G", name, *value));
  };
  std::uint64_t number = 0;
  const char* last = value->data() + value->size();
  const auto [end, code] = std::from_chars(value->data(), last, number);
  if (code != std::errc()) throw wrong();
  int shift = 0;
  if (end != last) {
    const auto unit = std::string_view("KMGT").find(static_cast<char>(*end & ~0x20));
    if (end + 1 != last || unit == std::string_view::npos) throw wrong();
    shift = 10 * (static_cast<int>(unit) + 1);
  }
  if (number > (std::numeric_limits<std::size_t>::max() >> shift)) throw wrong();
  return static_cast<std::size_t>(number) << shift;
}

std::optional<std::string> cache_folder() {
  if (auto own = text("CLNET_CACHE_DIR")) return own;
  // Relative paths here are invalid by the XDG specification, and ignored.
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') return std::string(xdg) + "/clnet";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/clnet";
  return std::nullopt;
}

std::vector<DriverCache> driver_caches() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return text && *text ? std::string(text) : std::string();
  };
  const auto home = value("HOME"), xdg = value("XDG_CACHE_HOME");
  const auto caches = !xdg.empty() ? xdg : home.empty() ? std::string() : home + "/.cache";
  std::vector<DriverCache> result;
  const auto add = [&](const char* driver, const char* variable, const std::string& own, const std::string& usual) {
    if (const auto& folder = own.empty() ? usual : own; !folder.empty()) result.push_back({driver, variable, folder});
  };
  add("NVIDIA", "CUDA_CACHE_PATH", value("CUDA_CACHE_PATH"), home.empty() ? "" : home + "/.nv/ComputeCache");
  const auto mesa = value("MESA_SHADER_CACHE_DIR");
  add("Mesa", "MESA_SHADER_CACHE_DIR", mesa.empty() ? "" : mesa + "/mesa_shader_cache",
      caches.empty() ? "" : caches + "/mesa_shader_cache");
  add("Intel", "NEO_CACHE_DIR", value("NEO_CACHE_DIR"), caches.empty() ? "" : caches + "/neo_compiler_cache");
  return result;
}

}  // namespace clnet::env
