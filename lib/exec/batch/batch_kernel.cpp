#include "lib/exec/batch/batch_kernel.h"

#include <fmt/format.h>

#include <string>
#include <utility>

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

/// A group waits until all that the next task reads is written, takes it if nobody else did, does it and counts it. Whoever waits
/// waits for tasks that others are doing: groups need not run at the same time. One that waits for long has no core of its own,
/// or those for which it waits have none: it leaves the rest to them, and groups that come later do so, too. The last to leave
/// makes the counters ready for the next run.
constexpr std::string_view loop = R"(
  volatile global int *const next = counters, *const finished = counters + LINE, *const left = counters + 2 * LINE,
                      *const few = counters + 3 * LINE;
  const global ulong *const values = list + FIRST_VALUE, *entry = values + list[VALUES];
  const int tasks = *few ? 0 : (int)list[TASKS], groups = (int)list[GROUPS];
  int first = 0, done = 0, task = *next;
  ulong waited = 0;
  while (task < tasks) {
    for (; task - first >= (int)entry[ITS_TASKS]; entry += entry[WORDS]) first += (int)entry[ITS_TASKS];
    if (done < (int)entry[AFTER]) {
      const ulong begun = NOW;
      while ((done = *finished) < (int)entry[AFTER] && *next == task && NOW - begun < list[PATIENCE]) PAUSE;
      if (done < (int)entry[AFTER]) {
        if (*next == task) {
          *few = 1;
          break;
        }
        task = *next;
        continue;
      }
      atomic_add(finished, 0);
      mem_fence(CLK_GLOBAL_MEM_FENCE);
    }
    const int taken = atomic_cmpxchg(next, task, task + 1);
    if (taken != task) {
      task = taken;
      continue;
    }
    const int n0 = (int)entry[RANGE], n1 = (int)entry[RANGE + 1], n2 = (int)entry[RANGE + 2], item = task - first;
    const int i0 = item % n0, i1 = item / n0 % n1, i2 = item / n0 / n1;
    switch ((int)entry[KERNEL]) {
)";

constexpr std::string_view end = R"(    }
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(finished);
    task = *next;
  }
  if (atomic_inc(left) == groups - 1) {
    *next = 0;
    *finished = 0;
    *left = 0;
    *few = 0;
  }
}
)";

}  // namespace

std::size_t argument_words(const Arg& arg) { return std::holds_alternative<BufferArg>(arg) ? 2 : 1; }

ocl::ProgramSource batch_program(const Recording& recording, const std::vector<const Launch*>& kernels,
                                 const BatchParameters& parameters, const DeviceInfo& device) {
  std::string text(ocl::before_functions());
  for (std::size_t k = 0; k < kernels.size(); ++k) text += ocl::functions_of(kernels[k]->program(), k);
  text += ocl::after_functions();
  for (const auto& [name, value] : {std::pair{"TASKS", BatchList::tasks},
                                    {"GROUPS", BatchList::groups},
                                    {"PATIENCE", BatchList::patience},
                                    {"VALUES", BatchList::values},
                                    {"FIRST_VALUE", BatchList::first_value},
                                    {"KERNEL", BatchList::kernel},
                                    {"WORDS", BatchList::words},
                                    {"ITS_TASKS", BatchList::its_tasks},
                                    {"AFTER", BatchList::after},
                                    {"RANGE", BatchList::range},
                                    {"LINE", BatchCounters::line / sizeof(cl_int)}})
    text += fmt::format("#define {} {}\n", name, value);
  // Vectors of 16 floats stay whole: see WIDE in kernels/clnet.clh.
  text += fmt::format(
      "#define SCALAR_OF(word) ((word) >> 32 ? values[(word) >> 32] : scalars[(word) + 1])\n"
      // Elsewhere a load of `finished` stands for a hundred cycles.
      "#ifdef __x86_64__\n#define PAUSE __builtin_ia32_pause()\n#define NOW __builtin_ia32_rdtsc()\n"
      "#else\n#define PAUSE waited += 100\n#define NOW waited\n#endif\n"
      "{}__attribute__((reqd_work_group_size(1, 1, 1))) kernel void launch_batch(const global ulong *list, volatile global int "
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
    std::size_t at = BatchList::arguments;
    for (const auto& arg : launch.arguments()) {
      text += argument(arg, at, recording) + ", ";
      at += argument_words(arg);
    }
    text += "i0, i1, i2, n0, n1, n2); break;\n";
  }
  text += end;
  ocl::ProgramSource program;
  program.name = fmt::format("batch of {} kernels", kernels.size());
  program.source = std::move(text);
  program.few_builtins = true;
  return program;
}

}  // namespace clnet::exec
