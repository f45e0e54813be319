// What lowering an operation writes: symbolic launches over value ids, never OpenCL objects. Views, arenas and CLBlast's
// offsets all go through (value id, element offset).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "clnet/device.h"
#include "clnet/shape.h"
#include "lib/cl/program_cache.h"
#include "lib/exec/launch/choosing.h"
#include "lib/exec/options/config.h"
#include "lib/graph/scope.h"

namespace clnet::exec {

using ValueId = std::int32_t;

/// A value from an element on.
struct Ref {
  ValueId value = -1;
  std::int64_t offset = 0;

  Ref at(std::int64_t elements) const { return {value, offset + elements}; }
};

/// How a kernel reads an input. same_element: the work-item that writes element i of an output is the only one that reads element
/// i of the input, and it reads all that it needs before it writes: the output may take the input's memory.
enum class Access : std::uint8_t { any, same_element };

struct BufferArg {
  Ref ref;
  bool reads = true, writes = false;
  Access access = Access::any;
  std::int64_t count = -1;  ///< elements from `ref` on that the launch reads or writes; -1: the rest of the value
  bool scattered = false;   ///< see Launch::scattered()
  ValueId taker = -1;       ///< see Launch::only_for()
};
/// A one-element leaf whose value the host knows, passed by value.
struct ScalarArg {
  ValueId value;
};
struct LocalArg {
  std::size_t bytes;
};
using Arg = std::variant<BufferArg, ScalarArg, LocalArg, std::int32_t, float>;

class Recording;

/// One kernel launch. Arguments are given in the order of the kernel's parameters.
class Launch {
 public:
  /// -D name=value.
  Launch& define(std::string_view name, std::int64_t value);
  Launch& define(std::string_view name, std::string_view value);
  /// A parameter IN(name), OUT(name) or INOUT(name): buffer and offset, and TYPE_name as a define.
  Launch& in(std::string_view name, Ref ref, Access access = Access::any);
  Launch& out(std::string_view name, Ref ref);
  Launch& inout(std::string_view name, Ref ref);
  /// SCALAR(name): the value of a leaf that Recorder::host_scalar() said yes to, in its arithmetic type.
  Launch& scalar(std::string_view name, Ref ref);
  /// Binds the parameter that reads all of `value` to `with` instead; false where there is none.
  bool rebind(ValueId value, Ref with);
  /// `const int`; throws Unsupported when the value does not fit.
  Launch& arg(std::int64_t value);
  template <std::floating_point T>
  Launch& arg(T) = delete;  // arg_float()
  Launch& args(std::initializer_list<std::int64_t> values);
  /// `const float`.
  Launch& arg_float(float value);
  /// `local T *`.
  Launch& local_memory(std::size_t bytes);
  /// Global work size; `local` empty leaves the work-group size to the driver, else `global` is rounded up to multiples of it
  /// (kernels check their bounds).
  Launch& range(std::initializer_list<std::int64_t> global, std::initializer_list<std::int64_t> local = {});
  Launch& range(const std::vector<std::int64_t>& global, const std::vector<std::int64_t>& local);
  /// Says that the launch touches only so many elements of the buffer argument given last. Every element of a value is written
  /// once before it is read, by one launch or by several that write a part each.
  Launch& part(std::int64_t elements);
  /// Says that the launch writes only some of the elements of the output given last, among what other launches have written.
  Launch& scattered();
  /// Says that the launch, which makes all of `output`, does so where that has memory of its own only, and that a later one,
  /// which changes some of it (INOUT), is for an output that lies in the memory of the input that the launch before reads as
  /// Access::same_element: of the two, one is made. The later one may be made again on what it has made, with the same result.
  Launch& unless_in_place(Ref output);
  Launch& if_in_place(Ref output);
  /// Says that the input given last is read by the same element of this output only, not of all others, too.
  Launch& only_for(Ref output);
  /// Says how many bytes the launch reads and writes, where that is less than its buffers from the arguments' elements on hold.
  Launch& moves(std::int64_t bytes);
  /// How much work the launch is: for the profiler, and where short launches are told from long ones.
  Launch& flops(double count);
  /// For the profiler.
  Launch& detail(std::string text);

  const ocl::ProgramSource& program() const { return program_; }
  const std::string& function() const { return function_; }
  const std::vector<Arg>& arguments() const { return args_; }
  const std::vector<std::size_t>& global() const { return global_; }
  const std::vector<std::size_t>& local() const { return local_; }
  double flop_count() const { return flops_; }
  /// See moves(); negative where nothing was said.
  double moved_bytes() const { return moved_bytes_; }
  const std::string& detail_text() const { return detail_; }
  const ScopePtr& scope() const { return scope_; }
  const Maker& maker() const { return maker_; }
  /// When the launch is made: always, or as its output lies; see unless_in_place().
  enum class When : std::uint8_t { always, apart, in_place };
  When when() const { return when_; }
  /// The value whose place tells, unless it is made always.
  ValueId in_question() const { return in_question_; }

 private:
  friend class Recorder;
  Launch(const Recording* recording, ocl::ProgramSource program, std::string function);
  Launch& buffer(std::string_view name, BufferArg arg);

  const Recording* recording_;
  ocl::ProgramSource program_;
  std::string function_;
  std::vector<Arg> args_;
  std::vector<std::size_t> global_{1}, local_;
  double flops_ = 0, moved_bytes_ = -1;
  std::string detail_;
  ScopePtr scope_;
  Maker maker_;
  When when_ = When::always;
  ValueId in_question_ = -1;
};

/// What a host call sees of the device.
class HostContext {
 public:
  virtual ~HostContext() = default;
  virtual ocl::Context& device() = 0;
  virtual const ::cl::Buffer& buffer(Ref ref) = 0;
  /// The offset of a Ref in its buffer, in elements.
  virtual std::size_t offset(Ref ref) = 0;
};

/// A call on the host that enqueues work itself (CLBlast, MPI).
struct HostCall {
  std::string name;
  std::vector<Ref> reads, writes;
  std::function<void(HostContext&)> call;
  double flops = 0;
};

using Command = std::variant<Launch, HostCall>;

/// Calls function(ref, whether it is written) for every buffer of the command.
template <class Function>
void for_each_ref(const Command& command, const Function& function) {
  if (const auto* launch = std::get_if<Launch>(&command)) {
    for (const auto& arg : launch->arguments())
      if (const auto* buffer = std::get_if<BufferArg>(&arg)) function(buffer->ref, buffer->writes);
  } else {
    const auto& call = std::get<HostCall>(command);
    for (auto ref : call.reads) function(ref, false);
    for (auto ref : call.writes) function(ref, true);
  }
}

/// Symbolic values and the commands over them, for a whole graph.
class Recording {
 public:
  struct ValueInfo {
    Spec spec;
    bool leaf = false;
    bool host_scalar = false;  ///< a one-element leaf whose value the host knows
    ValueId root = -1;         ///< the value whose buffer this one lives in (itself, unless it is a view)
    std::int64_t offset = 0;   ///< from the root's first element
    bool cached = false;       ///< made from leaves only, and worth keeping as long as they live
    bool small = false;        ///< cached, but only worth it where it is made again and again: see CachedForm
    bool form = false;         ///< another form of one value: made once, however many operations ask for the same
    ScopePtr scope = {};       ///< in which it is made
  };

  ValueId add_value(Spec spec);
  ValueId add_leaf(Spec spec, bool host_scalar);
  /// Whatever is added from now on is made in this scope of the program.
  void enter(ScopePtr scope) { scope_ = std::move(scope); }
  const ScopePtr& scope() const { return scope_; }
  /// The same of a part: what is recorded alike each time the same work is.
  void enter_part(std::size_t part) { part_ = part; }
  /// Makes `view` the same memory as `base` from an element on. Dtypes must be of the same size.
  void alias(ValueId view, Ref base);
  /// The leaf will be another one next time, as a trained weight is: keeping what is made of it would only cost memory.
  void expect_change(Ref leaf) { changing_.push_back(value(leaf.value).root); }
  const std::vector<ValueId>& changing() const { return changing_; }
  /// The value is small, made from leaves only, and kept while they live once it was made twice, where the plan's rules allow
  /// that.
  void keep_small(ValueId id) {
    auto& info = values_[static_cast<std::size_t>(id)];
    info.cached = info.small = true;
  }
  const ValueInfo& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  std::size_t value_count() const { return values_.size(); }
  const std::vector<Command>& commands() const { return commands_; }
  /// The lengths of its sequences, where it is to be foreseen what others would need (Recorder::foresee).
  void set_lengths(std::vector<std::int64_t> lengths) { lengths_ = std::move(lengths); }
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// A launch of a work with other lengths.
  struct Foreseen {
    Launch launch;
    std::int64_t growth;  ///< by what its buffers may have to be larger than their values are here
  };
  const std::vector<Foreseen>& foreseen() const { return foreseen_; }
  /// Whether a command from `first` on reads or writes the value, or a view of it.
  bool uses(std::size_t first, ValueId id) const;
  /// Moves the commands from `middle` on before those from `first` on.
  void move_before(std::size_t first, std::size_t middle);
  /// Launches that make the same form of the same value become one.
  void share_forms();

 private:
  friend class Recorder;
  std::deque<ValueInfo> values_;  // operations hold references to specs while they add values
  std::vector<ValueId> changing_;
  std::vector<Command> commands_;
  std::vector<std::int64_t> lengths_;
  std::vector<Foreseen> foreseen_;
  std::set<std::pair<ocl::ProgramSource, std::string>> asked_;  ///< what was foreseen of, by what it was recorded as
  ScopePtr scope_;
  std::size_t part_ = 0;
};

/// The lengths of which it is foreseen what they need, in any plan: what solvers choose by changes between them.
inline constexpr std::array<std::int64_t, 7> foreseen_lengths{1, 2, 4, 8, 16, 32, 64};

/// For how long what an operation packs of an input (TuningHints::packed) serves.
enum class Packed : std::uint8_t {
  once,    ///< one run of a plan: the input is computed, or a parameter in training
  leaf,    ///< as long as the input lives, a value that the plan only reads
  shared,  ///< that, and nothing else reads it, or as many operations of a plan as make it worth while
};

/// Who reads a value as an operation does.
struct Reuse {
  std::int64_t alike = 1;  ///< operations of the recording, with the same fields and at the same input
  bool kept = false;       ///< the value is a parameter's that nothing else reads: it stays, as in inference
};
class Reuses {
 public:
  virtual ~Reuses() = default;
  virtual Reuse of(std::size_t input) const = 0;
};

/// Elementwise operations that follow the one being recorded and are all that reads its output.
class Epilogue {
 public:
  virtual ~Epilogue() = default;
  /// Makes the launch finish each element by them; false where it cannot be said in terms of these channels.
  virtual bool join(Launch& launch, std::int64_t channels, std::int64_t inner) = 0;
  /// The same where the kernel keeps the elements to itself, by defines that begin with `name`. Nothing but the channel matters.
  virtual void join_inner(Launch& launch, std::string_view name, std::int64_t channels, std::int64_t inner) = 0;
};

/// Elementwise operations that make an input of the one being recorded and are read by nothing else.
class Prologue {
 public:
  virtual ~Prologue() = default;
  /// Makes the launch compute the elements that it loads by IN(name), if they are that input.
  virtual void join(Launch& launch, std::string_view name) = 0;
};

/// The pen that one operation's lower() holds.
class Recorder {
  friend class Configured;

 public:
  /// What is given by reference outlives it.
  Recorder(Recording& recording, const DeviceInfo& device, const Choosing& choosing, std::vector<ValueId> inputs,
           std::vector<ValueId> outputs, Epilogue* epilogue = nullptr, Prologue* prologue = nullptr,
           const Reuses* reuses = nullptr)
      : recording_(recording),
        device_(device),
        choosing_(choosing),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        epilogue_(epilogue),
        prologue_(prologue),
        reuses_(reuses) {}

  const Choosing& choosing() const { return choosing_; }
  /// Outputs that nothing reads or keeps.
  void set_unread(std::set<std::size_t> unread) { unread_ = std::move(unread); }
  /// For the last operation of a sequence (Rewrite): what follows those before it, each of which may be null.
  void set_inner_epilogues(std::vector<Epilogue*> inner) { inner_epilogues_ = std::move(inner); }

  /// What was chosen for the solver that is recording.
  const Config& config() const { return *config_; }
  /// What each list of solvers that was asked chose, in order: its operation's name and the choice.
  const std::vector<std::pair<std::string, Choice>>& chosen() const { return chosen_; }

  const DeviceInfo& device() const { return device_; }
  std::size_t input_count() const { return inputs_.size(); }
  Ref input(std::size_t index) const { return {inputs_.at(index), 0}; }
  Ref output(std::size_t index = 0) const { return {outputs_.at(index), 0}; }
  /// Whether anything reads the output or keeps it. One of several that nothing does need not be written.
  bool needs_output(std::size_t index) const { return unread_.count(index) == 0; }
  const Spec& spec(Ref ref) const { return recording_.value(ref.value).spec; }
  /// Whether the input's elements lie from there on, as an operation whose inputs it joins has given them their place.
  bool is_there(std::size_t input, Ref place) const;
  /// Scratch memory, alive until the operation's last command that uses it.
  Ref temporary(Spec spec);
  /// Scratch memory for another form of `source` (weights in panels, say), which must be all that it is made from. Where `source`
  /// is a leaf, as weights are in inference, it is kept while that lives, and the launches that write it are left out. A form
  /// that a single launch makes is made once in a plan, whoever asks for the same.
  Ref cached(Spec spec, Ref source);
  /// The same, but never kept for later runs.
  Ref form(Spec spec);
  /// What another form of the input would serve.
  Reuse reuse(std::size_t input) const { return reuses_ ? reuses_->of(input) : Reuse{}; }

  /// See Recording.
  void expect_change(Ref leaf) { recording_.expect_change(leaf); }

  /// A kernel of kernels/<program>.cl. The reference is good until the next command is recorded.
  Launch& kernel(std::string_view program, std::string_view function);
  /// A kernel of generated source; `title` names the program in logs and errors.
  Launch& generated(std::string_view title, std::string source, std::string_view function);
  /// A kernel of a user's source, which may call any of OpenCL's functions.
  Launch& custom(std::string_view title, std::string source, std::string_view function);
  void host(HostCall call);
  /// Lets what follows the operation elementwise (activation, residual, scale and shift) be done by the launch that stores the
  /// output, on each element before it is stored; nothing where nothing follows. Called when all other arguments are set: the
  /// kernel ends its parameters with EPILOGUE_PARAMETERS and stores EPILOGUE(value, index, channel); see kernels/epilogue.clh.
  /// Element i of the output is of channel i / inner % channels. When several launches store parts of the output, all say so.
  void epilogue(Launch& launch, std::int64_t channels, std::int64_t inner);
  /// Lets what follows the operation `which` of a sequence (Rewrite) before its last one be done by its launch, whose
  /// kernel has the defines `name`_BODY, of one value and its channel, `name`_PARAMETERS and `name`_ARGUMENTS, where anything
  /// follows.
  void inner_epilogue(Launch& launch, std::size_t which, std::string_view name, std::int64_t channels, std::int64_t inner);
  /// Lets the launch compute the elements of IN(name) itself where they are made elementwise for this operation only; nothing
  /// where they are not. Called when all other arguments are set, before epilogue(): see kernels/prologue.clh.
  void prologue(Launch& launch, std::string_view name);
  /// Called when all is recorded: records into nowhere what `problem` would be if an extent, which is a multiple of a sequence's
  /// length, were another one, so that its programs are known before it comes. `lower` is given such extents.
  void foresee(std::string problem, std::int64_t extent, const std::function<void(std::int64_t)>& lower);
  /// Says that this way of computing the output cannot end with what follows: its kernels are a library's, say.
  void decline_epilogue() { epilogue_answered_ = true; }
  /// Whether there is an epilogue or a prologue that lower() has neither joined nor declined.
  bool leaves_unanswered() const { return (epilogue_ && !epilogue_answered_) || (prologue_ && !prologue_answered_); }
  /// Whether somebody said so; else a kernel of its own follows.
  bool epilogue_joined() const { return epilogue_joined_; }
  /// Whether the input is a one-element leaf, or a view of one, whose value may be passed with Launch::scalar().
  bool host_scalar(std::size_t input) const;

 private:
  Launch& add(ocl::ProgramSource program, std::string_view function);

  Recording& recording_;
  const DeviceInfo& device_;
  const Choosing& choosing_;
  std::vector<ValueId> inputs_, outputs_;
  std::set<std::size_t> unread_;
  Epilogue* epilogue_;
  std::vector<Epilogue*> inner_epilogues_;
  Prologue* prologue_;
  const Reuses* reuses_;
  bool epilogue_answered_ = false, prologue_answered_ = false;
  bool epilogue_joined_ = false;
  const Config* config_ = nullptr;
  std::vector<std::pair<std::string, Choice>> chosen_;
  std::optional<std::size_t> pen_;  ///< which of these records now
};

}  // namespace clnet::exec
