#include "lib/exec/launch/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "lib/base/log.h"

namespace clnet::exec {

Launch::Launch(const Recording* recording, ocl::ProgramSource program, std::string function)
    : recording_(recording), program_(std::move(program)), function_(std::move(function)), scope_(recording->scope()) {}

Launch& Launch::define(std::string_view name, std::int64_t value) { return define(name, std::to_string(value)); }

Launch& Launch::define(std::string_view name, std::string_view value) {
  program_.defines[std::string(name)] = value;
  return *this;
}

void Launch::define_type(std::string_view name, Dtype dtype) {
  define(fmt::format("TYPE_{}", name), to_string(dtype));
  if (dtype == Dtype::f64 && !program_.users()) define("COMPUTES_F64", 1);
}

Launch& Launch::buffer(std::string_view name, BufferArg arg) {
  define_type(name, recording_->value(arg.ref.value).spec.dtype);
  args_.emplace_back(arg);
  return *this;
}

Launch& Launch::in(std::string_view name, Ref ref, Access access) {
  return buffer(name, {.ref = ref, .reads = true, .writes = false, .access = access});
}
Launch& Launch::out(std::string_view name, Ref ref) { return buffer(name, {.ref = ref, .reads = false, .writes = true}); }
Launch& Launch::inout(std::string_view name, Ref ref) { return buffer(name, {.ref = ref, .reads = true, .writes = true}); }

bool Launch::rebind(ValueId value, Ref with) {
  for (auto& arg : args_) {
    auto* buffer = std::get_if<BufferArg>(&arg);
    if (!buffer || buffer->writes || buffer->ref.value != value || buffer->ref.offset != 0) continue;
    buffer->ref = with;
    return true;
  }
  return false;
}

Launch& Launch::scalar(std::string_view name, Ref ref) {
  define_type(name, recording_->value(ref.value).spec.dtype);
  args_.emplace_back(ScalarArg{recording_->value(ref.value).root});
  return *this;
}

Launch& Launch::arg(std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    throw Unsupported(fmt::format("{}: {} is too large for a kernel's 32-bit index", function_, value));
  args_.emplace_back(static_cast<std::int32_t>(value));
  return *this;
}

Launch& Launch::args(std::initializer_list<std::int64_t> values) {
  for (auto value : values) arg(value);
  return *this;
}

Launch& Launch::arg_float(double value) {
  args_.emplace_back(value);
  return *this;
}

Launch& Launch::local_memory(std::size_t bytes) {
  args_.emplace_back(LocalArg{bytes});
  return *this;
}

Launch& Launch::range(std::initializer_list<std::int64_t> global, std::initializer_list<std::int64_t> local) {
  return range(std::vector(global), std::vector(local));
}

Launch& Launch::range(const std::vector<std::int64_t>& global, const std::vector<std::int64_t>& local) {
  global_.clear();
  local_.clear();
  for (auto size : global) global_.push_back(static_cast<std::size_t>(size));
  for (auto size : local) {
    const auto group = static_cast<std::size_t>(size);
    auto& total = global_[local_.size()];
    total = (total + group - 1) / group * group;
    local_.push_back(group);
  }
  return *this;
}

Launch& Launch::touches(std::int64_t elements) {
  std::get<BufferArg>(args_.back()).count = elements;
  return *this;
}

Launch& Launch::scattered() {
  std::get<BufferArg>(args_.back()).scattered = true;
  return *this;
}

Launch& Launch::unless_in_place(Ref output) {
  when_ = When::apart;
  in_question_ = output.value;
  return *this;
}
Launch& Launch::if_in_place(Ref output) {
  when_ = When::in_place;
  in_question_ = output.value;
  return *this;
}

Launch& Launch::only_for(Ref output) {
  std::get<BufferArg>(args_.back()).taker = output.value;
  return *this;
}

Launch& Launch::moves(std::int64_t bytes) {
  moved_bytes_ = static_cast<double>(bytes);
  return *this;
}

Launch& Launch::flops(double count) {
  flops_ = count;
  return *this;
}

Launch& Launch::detail(std::string text) {
  detail_ = std::move(text);
  return *this;
}

ValueId Recording::add_value(Spec spec) {
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back({.spec = std::move(spec), .root = id, .scope = scope_});
  return id;
}

ValueId Recording::add_leaf(Spec spec, bool host_scalar) {
  const auto id = add_value(std::move(spec));
  values_.back().leaf = true;
  values_.back().host_scalar = host_scalar;
  return id;
}

void Recording::alias(ValueId view, Ref base) {
  auto& info = values_[static_cast<std::size_t>(view)];
  const auto& source = value(base.value);
  info.root = source.root;
  info.offset = source.offset + base.offset;
}

bool Recording::uses(std::size_t first, ValueId id) const {
  bool found = false;
  for (auto i = first; i < commands_.size(); ++i)
    for_each_ref(commands_[i], [&](Ref ref, bool) { found = found || value(ref.value).root == value(id).root; });
  return found;
}

void Recording::move_before(std::size_t first, std::size_t middle) {
  const auto at = [&](std::size_t index) { return commands_.begin() + static_cast<std::ptrdiff_t>(index); };
  std::rotate(at(first), at(middle), commands_.end());
}

bool Recorder::is_there(std::size_t input, Ref place) const {
  const auto &value = recording_.value(inputs_.at(input)), &target = recording_.value(place.value);
  return value.root == target.root && value.offset == target.offset + place.offset;
}

bool Recorder::host_scalar(std::size_t input) const {
  const auto& value = recording_.value(inputs_.at(input));
  const auto& root = recording_.value(value.root);
  return root.host_scalar && value.spec.dtype == root.spec.dtype && value.spec.shape.numel() == 1;
}

bool Recorder::computes_f64() const {
  const auto is_f64 = [&](ValueId id) { return id >= 0 && recording_.value(id).spec.dtype == Dtype::f64; };
  return std::any_of(inputs_.begin(), inputs_.end(), is_f64) || std::any_of(outputs_.begin(), outputs_.end(), is_f64);
}

Ref Recorder::temporary(Spec spec) { return {recording_.add_value(std::move(spec)), 0}; }

Ref Recorder::prepack_once(Spec spec) {
  const auto result = temporary(std::move(spec));
  recording_.values_[static_cast<std::size_t>(result.value)].prepacked = true;
  return result;
}

Ref Recorder::prepack(Spec spec, Ref source) {
  const auto id = prepack_once(std::move(spec)).value;
  const auto& root = recording_.value(recording_.value(source.value).root);
  recording_.values_[static_cast<std::size_t>(id)].from_leaves = root.leaf && !root.host_scalar;
  return {id, 0};
}

Launch& Recorder::add(ocl::ProgramSource program, std::string_view function) {
  recording_.commands_.push_back(Launch(&recording_, std::move(program), std::string(function)));
  auto& launch = std::get<Launch>(recording_.commands_.back());
  launch.maker_.group = recording_.group_;
  if (pen_) {
    launch.maker_.op = chosen_[*pen_].first;
    launch.maker_.solver = chosen_[*pen_].second.solver;
  }
  return launch;
}

Launch& Recorder::kernel(std::string_view program, std::string_view function) {
  return add({std::string(program), {}, {}}, function);
}

Launch& Recorder::generated(std::string_view title, std::string source, std::string_view function) {
  auto& launch = custom(title, std::move(source), function);
  launch.program_.few_builtins = true;
  return launch;
}

Launch& Recorder::custom(std::string_view title, std::string source, std::string_view function) {
  return add({std::string(title), std::move(source), {}}, function);
}

void Recorder::host(HostCall call) { recording_.commands_.emplace_back(std::move(call)); }

void Recorder::epilogue(Launch& launch, std::int64_t channels, std::int64_t inner) {
  epilogue_answered_ = true;
  if (!epilogue_ || !epilogue_->join(launch, channels, inner)) return;
  epilogue_joined_ = true;
  round_fused(launch, "EPILOGUE_BODY");
}

void Recorder::round_fused(Launch& launch, const std::string& body) const {
  if (device_.prefers_vector_kernels) return;
  auto& text = launch.program_.defines.at(body);
  text = "_Pragma(\"OPENCL FP_CONTRACT OFF\") " + text;
}

void Recorder::foresee(std::string problem, std::int64_t extent, const std::function<void(std::int64_t)>& lower) {
  auto& commands = recording_.commands_;
  if (recording_.lengths_.empty() || commands.empty()) return;
  const auto* own = std::get_if<Launch>(&commands.back());
  if (!own || !recording_.asked_.emplace(own->program(), std::move(problem)).second) return;
  std::set<std::int64_t> others;
  for (const auto from : recording_.lengths_)
    if (extent % from == 0)
      for (const auto to : foreseen_lengths) others.insert(extent / from * to);
  others.erase(extent);
  const auto first = static_cast<std::ptrdiff_t>(commands.size());
  const auto chosen = chosen_.size();
  const bool answered = epilogue_answered_, joined = epilogue_joined_;
  for (const auto other : others) {
    try {
      lower(other);
    } catch (const Unsupported& error) {
      logging::print(logging::Level::solver, "not foreseen: {}", error.what());
    }
    for (auto at = commands.begin() + first; at != commands.end(); ++at)
      if (auto* launch = std::get_if<Launch>(&*at))
        recording_.foreseen_.push_back({std::move(*launch), std::max<std::int64_t>(1, (other + extent - 1) / extent)});
    commands.erase(commands.begin() + first, commands.end());
  }
  chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(chosen), chosen_.end());
  epilogue_answered_ = answered;
  epilogue_joined_ = joined;
}

void Recorder::inner_epilogue(Launch& launch, std::size_t which, std::string_view name, std::int64_t channels,
                              std::int64_t inner) {
  if (auto* epilogue = inner_epilogues_.at(which)) epilogue->join_inner(launch, name, channels, inner);
}

void Recorder::prologue(Launch& launch, std::string_view name) {
  prologue_answered_ = true;
  if (prologue_ && prologue_->join(launch, name)) round_fused(launch, "PROLOGUE_BODY");
}

}  // namespace clnet::exec
