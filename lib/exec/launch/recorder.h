// The output of lowering: symbolic launches over value ids, never OpenCL objects. Views, arenas and CLBlast's offsets all use
// (value id, element offset).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
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

namespace clnet::ocl {
class Mapping;
}  // namespace clnet::ocl

namespace clnet::exec {

using ValueId = std::int32_t;

/// A value from an element on.
struct Ref {
  ValueId value = -1;
  std::int64_t offset = 0;

  Ref at(std::int64_t elements) const { return {value, offset + elements}; }
};

/// How a kernel reads an input. same_element: only the work-item that writes element i of an output reads element i of the input,
/// and it reads before it writes. Then the output may take the input's memory.
enum class Access : std::uint8_t { any, same_element };

struct BufferArg {
  Ref ref;
  bool reads = true, writes = false;
  Access access = Access::any;
  std::int64_t count = -1;  ///< number of elements from `ref` on that the launch accesses; -1: the rest of the value
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
using Arg = std::variant<BufferArg, ScalarArg, LocalArg, std::int32_t, double>;

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
  /// SCALAR(name): the value of a leaf for which Recorder::host_scalar() is true, in its arithmetic type.
  Launch& scalar(std::string_view name, Ref ref);
  /// Binds the parameter that reads all of `value` to `with` instead; false where there is none.
  bool rebind(ValueId value, Ref with);
  /// `const int`; throws Unsupported where the value does not fit.
  Launch& arg(std::int64_t value);
  template <std::floating_point T>
  Launch& arg(T) = delete;  // arg_float()
  Launch& args(std::initializer_list<std::int64_t> values);
  /// `const float`: rounded to it, unless the launch computes in f64.
  Launch& arg_float(double value);
  /// `local T *`.
  Launch& local_memory(std::size_t bytes);
  /// Global work size. The driver chooses an empty `local`; otherwise `global` is rounded up to multiples of it (kernels check
  /// their bounds).
  Launch& range(std::initializer_list<std::int64_t> global, std::initializer_list<std::int64_t> local = {});
  Launch& range(const std::vector<std::int64_t>& global, const std::vector<std::int64_t>& local);
  /// The launch accesses only this many elements of the last buffer argument. Every element of a value is written once before it
  /// is read, by one launch or by several that write a part each.
  Launch& touches(std::int64_t elements);
  /// The launch writes only some elements of the last output, among those of other launches.
  Launch& scattered();
  /// Makes this launch one of two alternatives. This one computes all of `output`, and runs only where `output` has memory of its
  /// own. The other one, later, changes some of it (INOUT). It runs where `output` lies in the memory of the input that this one
  /// reads as Access::same_element. It may be repeated on its own result without a change.
  Launch& unless_in_place(Ref output);
  Launch& if_in_place(Ref output);
  /// The last input is read as same_element for this output only, not for all others.
  Launch& only_for(Ref output);
  /// The bytes that the launch reads and writes, where its buffers from the arguments' elements on are larger.
  Launch& moves(std::int64_t bytes);
  /// The launch's arithmetic operations: for the profiler, and to tell short launches from long ones.
  Launch& flops(double count);
  /// For the profiler.
  Launch& detail(std::string text);

  const ocl::ProgramSource& program() const { return program_; }
  const std::string& function() const { return function_; }
  const std::vector<Arg>& arguments() const { return args_; }
  /// Whether a parameter holds f64. Such a program computes in double (kernels/doubles.clh). A user's kernel says double itself.
  bool computes_f64() const { return program_.defines.contains("COMPUTES_F64"); }
  const std::vector<std::size_t>& global() const { return global_; }
  const std::vector<std::size_t>& local() const { return local_; }
  double flop_count() const { return flops_; }
  /// See moves(); negative: not set.
  double moved_bytes() const { return moved_bytes_; }
  const std::string& detail_text() const { return detail_; }
  const ScopePtr& scope() const { return scope_; }
  const Maker& maker() const { return maker_; }
  /// When the launch runs: always, or depending on the output's place; see unless_in_place().
  enum class When : std::uint8_t { always, apart, in_place };
  When when() const { return when_; }
  /// The value whose place decides, unless it always runs.
  ValueId in_question() const { return in_question_; }

 private:
  friend class Recorder;
  Launch(const Recording* recording, ocl::ProgramSource program, std::string function);
  /// TYPE_name, for a buffer or scalar of this dtype.
  void define_type(std::string_view name, Dtype dtype);
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

/// A host call's access to the device.
class HostContext {
 public:
  virtual ~HostContext() = default;
  virtual ocl::Context& device() = 0;
  virtual const ::cl::Buffer& buffer(Ref ref) = 0;
  /// The offset of a Ref in its buffer, in elements.
  virtual std::size_t offset(Ref ref) = 0;
  /// Copies from a Ref on to the host, after all earlier work, and back from it. `owner` keeps the bytes.
  virtual void read(Ref ref, void* target, std::size_t bytes) = 0;
  /// The same of several, which waits once.
  struct Range {
    Ref ref;
    void* target;
    std::size_t bytes;
  };
  virtual void read(std::span<const Range> ranges) = 0;
  /// All of these values in the host's memory: those that it reads, and behind them those that it writes. See Context::map().
  virtual std::unique_ptr<ocl::Mapping> map(std::span<const Ref> read, std::span<const Ref> written) = 0;
  /// Ends when the run does, as soon as all is enqueued or where it fails: before other work uses its memory.
  virtual void keep(std::shared_ptr<void> what) = 0;
  virtual void write(Ref ref, std::shared_ptr<const void> owner, const void* source, std::size_t bytes) = 0;
};

/// A call on the host that enqueues work itself (CLBlast), or exchanges values with other processes.
struct HostCall {
  std::string name;
  std::vector<Ref> reads, writes;
  std::function<void(HostContext&)> call;
  double flops = 0;
  /// Others count the calls: an evaluation that fails behind it is not tried again.
  bool once = false;
  /// Runs as soon as what it reads is there, and behind earlier such calls.
  bool early = false;
  /// Ends what such a call began, and reads only what that one has.
  bool ends_early = false;
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
    bool host_scalar = false;  ///< one-element leaf whose value the host knows
    ValueId root = -1;         ///< the value whose buffer contains this one (itself, unless it is a view)
    std::int64_t offset = 0;   ///< from the root's first element
    bool from_leaves = false;  ///< made from leaves only, and prepacked while they live
    bool small = false;        ///< prepacked only where it is made repeatedly: see Prepack
    bool prepacked = false;    ///< another layout of one value: made once, for all operations that need it
    ScopePtr scope = {};       ///< scope of the values
  };

  ValueId add_value(Spec spec);
  ValueId add_leaf(Spec spec, bool host_scalar);
  /// Sets the program's scope of the following values and commands.
  void enter(ScopePtr scope) { scope_ = std::move(scope); }
  const ScopePtr& scope() const { return scope_; }
  /// Sets the group of the following commands: a group is recorded identically each time the same work is.
  void enter_group(std::size_t group) { group_ = group; }
  /// Makes `view` the same memory as `base` from an element on. Dtypes must be of the same size.
  void alias(ValueId view, Ref base);
  /// The leaf will change next time, as a trained weight: keeping values derived from it would only cost memory.
  void expect_change(Ref leaf) { changing_.push_back(value(leaf.value).root); }
  const std::vector<ValueId>& changing() const { return changing_; }
  /// Marks a small value made from leaves only. It is kept while they live, once it was made twice, where the plan's rules allow
  /// it.
  void keep_small(ValueId id) {
    auto& info = values_[static_cast<std::size_t>(id)];
    info.from_leaves = info.small = true;
  }
  const ValueInfo& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  std::size_t value_count() const { return values_.size(); }
  const std::vector<Command>& commands() const { return commands_; }
  /// The lengths of its sequences, to foresee the programs of other lengths (Recorder::foresee).
  void set_lengths(std::vector<std::int64_t> lengths) { lengths_ = std::move(lengths); }
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// A launch for other lengths.
  struct Foreseen {
    Launch launch;
    std::int64_t growth;  ///< factor by which its buffers may exceed their values here
  };
  const std::vector<Foreseen>& foreseen() const { return foreseen_; }
  /// Whether a command from `first` on reads or writes the value, or a view of it.
  bool uses(std::size_t first, ValueId id) const;
  /// Moves the commands from `middle` on before those from `first` on.
  void move_before(std::size_t first, std::size_t middle);
  /// Merges launches that prepack the same value alike.
  void merge_prepacks();
  /// Moves early host calls, and launches that only serve them, before commands that they do not depend on.
  void move_early_calls();

 private:
  friend class Recorder;
  std::deque<ValueInfo> values_;  // operations hold references to specs while they add values
  std::vector<ValueId> changing_;
  std::vector<Command> commands_;
  std::vector<std::int64_t> lengths_;
  std::vector<Foreseen> foreseen_;
  std::set<std::pair<ocl::ProgramSource, std::string>> asked_;  ///< problems already foreseen, by program and text
  ScopePtr scope_;
  std::size_t group_ = 0;
};

/// The lengths whose programs every plan foresees: solvers' choices change between them.
inline constexpr std::array<std::int64_t, 7> foreseen_lengths{1, 2, 4, 8, 16, 32, 64};

/// How long the prepacked values of an input (TuningHints::packed) serve.
enum class Packed : std::uint8_t {
  once,    ///< one run of a plan: the input is computed, or a parameter in training
  leaf,    ///< the lifetime of the input, a value that the plan only reads
  shared,  ///< the same, and nothing else reads the input, or enough operations of a plan do
};

/// The number of equal readers of a value.
struct EqualReaders {
  std::int64_t alike = 1;  ///< operations of the recording with the same fields and this input
  bool lasting = false;    ///< the value is a parameter that nothing else reads, so it stays, as in inference
};
class ReaderCounts {
 public:
  virtual ~ReaderCounts() = default;
  virtual EqualReaders of(std::size_t input) const = 0;
};

/// Elementwise operations that follow the operation in recording and are the only readers of its output.
class Epilogue {
 public:
  virtual ~Epilogue() = default;
  /// Makes the launch apply them to each element. False where these channels cannot express them.
  virtual bool join(Launch& launch, std::int64_t channels, std::int64_t inner) = 0;
  /// The same for elements that stay within the kernel, by defines that begin with `name`. Only the channel matters.
  virtual void join_inner(Launch& launch, std::string_view name, std::int64_t channels, std::int64_t inner) = 0;
};

/// Elementwise operations that produce an input of the operation in recording, for it alone.
class Prologue {
 public:
  virtual ~Prologue() = default;
  /// Makes the launch compute the elements that it loads by IN(name). False where these are not that input.
  virtual bool join(Launch& launch, std::string_view name) = 0;
};

/// The interface through which one operation's lower() writes launches.
class Recorder {
  friend class Configured;

 public:
  /// References must outlive it.
  Recorder(Recording& recording, const DeviceInfo& device, const Choosing& choosing, std::vector<ValueId> inputs,
           std::vector<ValueId> outputs, Epilogue* epilogue = nullptr, Prologue* prologue = nullptr,
           const ReaderCounts* counts = nullptr)
      : recording_(recording),
        device_(device),
        choosing_(choosing),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        epilogue_(epilogue),
        prologue_(prologue),
        reader_counts_(counts) {}

  const Choosing& choosing() const { return choosing_; }
  /// Outputs that nothing reads or keeps.
  void set_unread(std::set<std::size_t> unread) { unread_ = std::move(unread); }
  /// For the last operation of fused groups (Rewrite): the epilogues of the operations before it; each may be null.
  void set_inner_epilogues(std::vector<Epilogue*> inner) { inner_epilogues_ = std::move(inner); }

  /// The configuration of the solver in recording.
  const Config& config() const { return *config_; }
  /// The choices of all solver lists used, in order: the operation's name and the choice.
  const std::vector<std::pair<std::string, Choice>>& chosen() const { return chosen_; }

  const DeviceInfo& device() const { return device_; }
  /// Whether an input or output is f64.
  bool computes_f64() const;
  std::size_t input_count() const { return inputs_.size(); }
  Ref input(std::size_t index) const { return {inputs_.at(index), 0}; }
  Ref output(std::size_t index = 0) const { return {outputs_.at(index), 0}; }
  /// Whether anything reads or keeps the output. An operation with several outputs need not write an unneeded one.
  bool needs_output(std::size_t index) const { return unread_.count(index) == 0; }
  const Spec& spec(Ref ref) const { return recording_.value(ref.value).spec; }
  /// Whether the input's elements lie at `place` already, in the output of an operation that joins its inputs.
  bool is_there(std::size_t input, Ref place) const;
  /// Scratch memory, alive until the last command that uses it.
  Ref temporary(Spec spec);
  /// Scratch memory to prepack `source`, and from `source` alone, as weights in panels. For a leaf, as weights in
  /// inference, it is kept while the leaf lives, and its launches are left out. Prepacking by a single launch is done once in
  /// a plan, for all readers.
  Ref prepack(Spec spec, Ref source);
  /// The same, but never kept for later runs.
  Ref prepack_once(Spec spec);
  /// The readers that prepacking the input would serve.
  EqualReaders equal_readers(std::size_t input) const { return reader_counts_ ? reader_counts_->of(input) : EqualReaders{}; }

  /// See Recording.
  void expect_change(Ref leaf) { recording_.expect_change(leaf); }

  /// A kernel of kernels/<program>.cl. The reference is valid until the next command is recorded.
  Launch& kernel(std::string_view program, std::string_view function);
  /// A kernel of generated source; `title` names the program in logs and errors.
  Launch& generated(std::string_view title, std::string source, std::string_view function);
  /// A kernel of a user's source, which may call any of OpenCL's functions.
  Launch& custom(std::string_view title, std::string source, std::string_view function);
  void host(HostCall call);
  /// Lets the launch that stores the output apply the elementwise operations that follow (activation, residual, scale and shift).
  /// Does nothing where none follow. Call it when all other arguments are set: the kernel ends its parameters with
  /// EPILOGUE_PARAMETERS and stores EPILOGUE(value, index, channel); see kernels/epilogue.clh. Element i of the output has
  /// channel i / inner % channels. If several launches store parts of the output, each must call it.
  void epilogue(Launch& launch, std::int64_t channels, std::int64_t inner);
  /// The same for operation `which` of fused groups (Rewrite), before its last one. The kernel gets the defines `name`_BODY, of
  /// one value and its channel, `name`_PARAMETERS and `name`_ARGUMENTS, where operations follow.
  void inner_epilogue(Launch& launch, std::size_t which, std::string_view name, std::int64_t channels, std::int64_t inner);
  /// Lets the launch compute the elements of IN(name) itself where elementwise operations produce them for this operation only;
  /// otherwise does nothing. Call it when all other arguments are set, before epilogue(): see kernels/prologue.clh.
  void prologue(Launch& launch, std::string_view name);
  /// Call it after recording. Records the problem for another extent, a multiple of a sequence's length, into a scratch
  /// recording, so that its programs are known beforehand. `lower` gets such extents.
  void foresee(std::string problem, std::int64_t extent, const std::function<void(std::int64_t)>& lower);
  /// Declares that this way to compute the output cannot take an epilogue, as a library's kernels cannot.
  void decline_epilogue() { epilogue_answered_ = true; }
  /// Whether lower() has neither joined nor declined an epilogue or prologue.
  bool leaves_unanswered() const { return (epilogue_ && !epilogue_answered_) || (prologue_ && !prologue_answered_); }
  /// Whether a launch took the epilogue; otherwise a separate kernel follows.
  bool epilogue_joined() const { return epilogue_joined_; }
  /// Whether the input is a one-element leaf, or a view of one, for Launch::scalar().
  bool host_scalar(std::size_t input) const;

 private:
  /// What was fused into the launch gives the bits of single operations, as generated kernels do.
  void round_fused(Launch& launch, const std::string& body) const;
  Launch& add(ocl::ProgramSource program, std::string_view function);

  Recording& recording_;
  const DeviceInfo& device_;
  const Choosing& choosing_;
  std::vector<ValueId> inputs_, outputs_;
  std::set<std::size_t> unread_;
  Epilogue* epilogue_;
  std::vector<Epilogue*> inner_epilogues_;
  Prologue* prologue_;
  const ReaderCounts* reader_counts_;
  bool epilogue_answered_ = false, prologue_answered_ = false;
  bool epilogue_joined_ = false;
  const Config* config_ = nullptr;
  std::vector<std::pair<std::string, Choice>> chosen_;
  std::optional<std::size_t> pen_;  ///< index of the solver that records now
};

}  // namespace clnet::exec
