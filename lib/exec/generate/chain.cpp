#include "lib/exec/generate/chain.h"

#include <fmt/format.h>

#include <string>

#include "lib/cl/kernel_function.h"

namespace clnet::exec {

namespace {

/// An argument as the kernel's function takes it, from word `at` of the entry on. The dtype of a scalar shows in its value alone:
/// floats are kept by their bits.
std::string argument(const Arg& arg, std::size_t at, const Recording& recording) {
  if (std::holds_alternative<BufferArg>(arg))
    return fmt::format("bases[(uint)entry[{0}]], entry[{1}] + values[entry[{0}] >> 32]", at, at + 1);
  if (const auto* scalar = std::get_if<ScalarArg>(&arg)) {
    const auto value = fmt::format("SCALAR_OF(entry[{}])", at);
    return is_floating(recording.value(scalar->value).spec.dtype) ? fmt::format("as_float((uint){})", value) : value;
  }
  if (std::holds_alternative<LocalArg>(arg)) return fmt::format("(local void *)(memory + entry[{}])", at);
  if (std::holds_alternative<std::int32_t>(arg)) return fmt::format("(int)entry[{}]", at);
  return fmt::format("as_float((uint)entry[{}])", at);
}

/// A group takes the next task in the list's order, waits until all that it reads is written, does it and counts it. Whoever
/// waits waits for tasks that others have taken, the first of which waits for nothing: groups need not run at the same time. The
/// last to leave makes the counters ready for the next run.
constexpr std::string_view loop = R"(
  const global ulong *const values = list + 3, *entry = values + list[2];
  const int tasks = (int)list[0], groups = (int)list[1];
  int first = 0, done = 0;
  for (;;) {
    const int task = atomic_inc(counters);
    if (task >= tasks) break;
    for (; task - first >= (int)entry[2]; entry += entry[1]) first += (int)entry[2];
    if (done < (int)entry[3]) {
      while ((done = counters[16]) < (int)entry[3]) PAUSE;
      atomic_add(counters + 16, 0);
      mem_fence(CLK_GLOBAL_MEM_FENCE);
    }
    const int n0 = (int)entry[4], n1 = (int)entry[5], n2 = (int)entry[6], item = task - first;
    const int i0 = item % n0, i1 = item / n0 % n1, i2 = item / n0 / n1;
    switch ((int)entry[0]) {
)";

constexpr std::string_view end = R"(    }
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(counters + 16);
  }
  if (atomic_inc(counters + 32) == groups - 1) {
    counters[0] = 0;
    counters[16] = 0;
    counters[32] = 0;
  }
}
)";

}  // namespace

std::size_t chain_words(const Arg& arg) { return std::holds_alternative<BufferArg>(arg) ? 2 : 1; }

ocl::ProgramSource chain_program(const Recording& recording, const std::vector<const Launch*>& kernels,
                                 const ChainParameters& parameters, const DeviceInfo& device) {
  std::string text(ocl::before_functions());
  for (std::size_t k = 0; k < kernels.size(); ++k) text += ocl::functions_of(kernels[k]->program(), k);
  text += ocl::after_functions();
  // Vectors of 16 floats stay whole: see WIDE in kernels/clnet.clh.
  text += fmt::format(
      "#define SCALAR_OF(word) ((word) >> 32 ? values[(word) >> 32] : scalars[(word) + 1])\n"
      "#ifdef __x86_64__\n#define PAUSE __builtin_ia32_pause()\n#else\n#define PAUSE\n#endif\n"
      "{}__attribute__((reqd_work_group_size(1, 1, 1))) kernel void chain(const global ulong *list, volatile global int "
      "*counters,\n"
      "    local float16 *memory",
      device.native_float_width >= 16 ? "__attribute__((__min_vector_width__(512))) " : "");
  for (std::size_t k = 0; k < parameters.bases; ++k) text += fmt::format(", global void *base{}", k);
  for (std::size_t k = 0; k < parameters.scalars; ++k) text += fmt::format(", const ulong scalar{}", k);
  text += ") {\n  global void *const bases[] = {";
  for (std::size_t k = 0; k < parameters.bases; ++k) text += fmt::format("{}base{}", k ? ", " : "", k);
  text += "};\n  const ulong scalars[] = {0";
  for (std::size_t k = 0; k < parameters.scalars; ++k) text += fmt::format(", scalar{}", k);
  text += "};";
  text += loop;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto& launch = *kernels[k];
    text += fmt::format("      case {}: {}(", k, ocl::function_name(launch.function(), k));
    std::size_t at = ChainList::arguments;
    for (const auto& arg : launch.arguments()) {
      text += argument(arg, at, recording) + ", ";
      at += chain_words(arg);
    }
    text += "i0, i1, i2, n0, n1, n2); break;\n";
  }
  text += end;
  ocl::ProgramSource program;
  program.name = fmt::format("chain of {} kernels", kernels.size());
  program.source = std::move(text);
  program.few_builtins = true;
  return program;
}

}  // namespace clnet::exec
