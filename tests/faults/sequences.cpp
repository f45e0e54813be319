// The same as training.cpp for what reads sequences: an embedding, a recurrent layer and attention in f16 under a loss scale,
// whose gradients are summed up over two batches; steps with a cache of keys and values; and functions that compile() runs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "lib/exec/upload.h"
#include "tests/faults/failing.h"

using namespace clnet;
using test::calls_of;
using test::error_of;
using test::is_null_device;
using test::same_bits;

namespace {

/// Half of the steps accumulate, the others apply the sums.
struct Sequences {
  static constexpr int phases = 2;
  static constexpr std::int64_t symbols = 7, width = 8;

  struct Model : nn::Module {
    nn::Embedding words{symbols, width};
    nn::LSTM lstm{width, width, {.batch_first = true}};
    nn::MultiheadAttention attention{width, 2, {.dropout = 0.25, .batch_first = true}};
    nn::Linear head{width, symbols};
    Model() {
      add("words", words);
      add("lstm", lstm);
      add("attention", attention);
      add("head", head);
    }
    Tensor forward(const Tensor& x) override {
      const Tensor y = lstm(words(x));
      return head(attention(y, y, y, {.is_causal = true}));
    }
  };
  Model model;
  optim::Adam optimizer;

  Sequences() : model(make()), optimizer(model, {.learning_rate = 1e-2, .clip_norm = 1}) {
    // It grows so often that some steps overflow, and are not made. What is on the device that the null driver plays is zeros:
    // there from the beginning on, so that states are equal.
    optimizer.set_loss_scale({.initial = 0x1p10, .growth = 16, .interval = 1});
    optimizer.to(Device::current());
  }

  static Model make() {
    manual_seed(1);
    return {};
  }

  static Tensor numbers(int number) {
    std::vector<std::int32_t> result(2 * 5);
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = static_cast<std::int32_t>((i * i + 3 * static_cast<std::size_t>(number)) % symbols);
    return exec::copy_now(Tensor::from(result, Shape{2, 5}), Device::current());
  }

  Tensor step(int number) {
    manual_seed(1000 + static_cast<std::uint64_t>(number));
    Tensor loss;
    {
      const Autocast half(Dtype::f16);
      loss = cross_entropy(flatten(model(numbers(number)), 0, 1), flatten(numbers(number + 1), 0, 1)) / 2.0;
    }
    return number % 2 == 0 ? optimizer.accumulate(loss) : optimizer.step(loss);
  }

  std::vector<float> inference() {
    model.inference();
    const auto result = model(numbers(5)).to_vector<float>();
    model.train();
    return result;
  }

  test::State state() { return test::state_of(model, optimizer); }
};

/// Half of the steps call a compiled function, which updates running statistics, the others apply the gradients that it gave.
struct CompiledSteps {
  static constexpr int phases = 2;
  nn::Sequential model;
  optim::Adam optimizer;
  std::vector<Tensor> results;
  std::function<std::vector<Tensor>(const Tensor& x, const Tensor& labels)> calls;
  std::function<Tensor(const Tensor& x)> infers;

  CompiledSteps(const CompiledSteps&) = delete;
  CompiledSteps& operator=(const CompiledSteps&) = delete;
  CompiledSteps() : model(make()), optimizer(model, {.learning_rate = 1e-2}) {
    calls = compile([this](const Tensor& x, const Tensor& labels) {
      const Tensor loss = cross_entropy(model(x), labels);
      auto all = nn::gradients(loss, model.parameters());
      all.push_back(loss);
      return all;
    });
    infers = compile([this](const Tensor& x) { return model(x); });
  }

  static nn::Sequential make() {
    manual_seed(1);
    return nn::Sequential{nn::Linear{6, 8}, nn::BatchNorm1d{8}, relu, nn::Dropout{0.25}, nn::Linear{8, 3}};
  }

  static Tensor input(int number) {
    std::vector<float> values(4 * 6);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(number) * 101) % 97) / 97.0F;
    return exec::copy_now(Tensor::from(values, Shape{4, 6}), Device::current());
  }

  Tensor step(int number) {
    if (number % 2 == 1) {
      optimizer.apply({results.begin(), results.end() - 1});
      return results.back();
    }
    manual_seed(1000 + static_cast<std::uint64_t>(number));
    results = calls(input(number), Tensor::from(std::vector<std::int32_t>{number % 3, 1, 2, 0}, Shape{4}));
    return results.back();
  }

  std::vector<float> inference() {
    model.inference();
    const auto result = infers(input(7)).to_vector<float>();
    model.train();
    return result;
  }

  test::State state() { return test::state_of(model, optimizer); }
};

/// Positions that are read one after the other, as what reads them keeps what it has read.
struct Reader {
  std::function<Tensor(int position)> read;
  /// Back to where the reader was before the last read(), which returned; empty where that cannot be.
  std::function<void()> back;
};

enum class Again { evaluated, read };

Tensor position(int number, std::int64_t length = 1) {
  std::vector<float> values(static_cast<std::size_t>(length) * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) + static_cast<float>(11 * number));
  return Tensor::from(values, Shape{1, length, 8});
}

/// Position 0 is read, then 1, without a fault; then 2, in which one fails, and 3. `waits`: nobody looks at position 1.
void read_with_a_fault(const std::function<Reader()>& make, bool waits, Again again) {
  constexpr int last = 3;
  std::vector<std::vector<float>> want;
  const auto undisturbed = make();
  for (int i = 0; i <= last; ++i) want.push_back(undisturbed.read(i).to_vector<float>());

  const auto start = [&] {
    auto reader = make();
    CHECK(same_bits(reader.read(0).to_vector<float>(), want[0]));
    const Tensor y = reader.read(1);
    if (!waits) CHECK(same_bits(y.to_vector<float>(), want[1]));
    return reader;
  };
  (void)start().read(2).to_vector<float>();  // plans are made
  int failed = 0;
  for (const faults::Call& call : faults::calls()) {
    const auto counting = start();
    const long count = calls_of(call, [&] { (void)counting.read(2).to_vector<float>(); });
    for (long number = 1; number <= count; ++number) {
      INFO(call.name << " number " << number << (waits ? ", position 1 waits" : ""));
      const auto reader = start();
      Tensor y;
      std::vector<float> values;
      const auto error = error_of(call, number, [&] {
        y = reader.read(2);
        values = y.to_vector<float>();
      });
      if (error) {
        ++failed;
        // A read that throws has read nothing.
        if (!y.defined() || again == Again::read) {
          if (y.defined()) reader.back();
          y = reader.read(2);
        }
        values = y.to_vector<float>();
      }
      CHECK(same_bits(values, want[2]));
      CHECK(same_bits(reader.read(last).to_vector<float>(), want[last]));
    }
  }
  CHECK(failed > 5);
}

}  // namespace

TEST_CASE("a fault in a step of a network for sequences whose plan is known") {
  CHECK(test::fail_in_known_steps<Sequences>(is_null_device() ? 40 : 10) > 50);
}

TEST_CASE("a fault in a step of a network for sequences that makes its plan and programs") {
  test::fail_in_first_steps<Sequences>(is_null_device() ? 10 : 1, test::builds);
}

TEST_CASE("a fault in a call of a compiled function whose plan is known") {
  CHECK(test::fail_in_known_steps<CompiledSteps>() > 50);
}

TEST_CASE("a fault in a call of a compiled function that makes its graph, plan and programs") {
  test::fail_in_first_steps<CompiledSteps>(is_null_device() ? 20 : 1, test::builds);
}

TEST_CASE("a fault in a step with a cache: the result can be evaluated again, or the step made again") {
  manual_seed(1);
  auto layer = std::make_shared<nn::MultiheadAttention>(8, 2, nn::MultiheadAttentionOptions{.batch_first = true});
  const auto make = [&] {
    const auto cache = std::make_shared<nn::KVCache>(layer->cache(1, 8));
    const auto before = std::make_shared<std::int64_t>();
    return Reader{[=](int number) {
                    *before = cache->length;
                    const auto x = position(number, number == 0 ? 2 : 1);
                    try {
                      return layer->step(x, *cache);
                    } catch (const Error&) {
                      CHECK(cache->length == *before);
                      throw;
                    }
                  },
                  [=] { cache->length = *before; }};
  };
  for (const bool waits : {false, true})
    for (const auto again : {Again::evaluated, Again::read}) read_with_a_fault(make, waits, again);
}

namespace {

std::int64_t& length_of(nn::KVCache& cache) { return cache.length; }
std::int64_t& length_of(nn::DecoderCache& cache) { return cache.target.length; }

/// Steps of all layers with caches that `make_caches` makes: all lengths change, or none.
template <class Model, class Make>
void step_layers_with_a_fault(const Model& model, const Make& make_caches) {
  const auto make = [&] {
    const auto caches = std::make_shared<std::invoke_result_t<const Make&>>(make_caches());
    const auto before = std::make_shared<std::int64_t>();
    const auto all_are = [=](std::int64_t length) {
      return std::all_of(caches->begin(), caches->end(), [&](auto& cache) { return length_of(cache) == length; });
    };
    return Reader{[=](int number) {
                    *before = length_of(caches->front());
                    CHECK(all_are(*before));
                    try {
                      return model.step(position(number, number == 0 ? 2 : 1), *caches);
                    } catch (const Error&) {
                      CHECK(all_are(*before));
                      throw;
                    }
                  },
                  [=] {
                    for (auto& cache : *caches) length_of(cache) = *before;
                  }};
  };
  for (const bool waits : {false, true})
    for (const auto again : {Again::evaluated, Again::read}) read_with_a_fault(make, waits, again);
}

}  // namespace

TEST_CASE("a fault in a step of several layers with caches") {
  manual_seed(1);
  const nn::TransformerLayerOptions options{.dim_feedforward = 8, .dropout = 0, .batch_first = true};
  const nn::TransformerEncoder encoder(8, 2, 2, options);
  step_layers_with_a_fault(encoder, [&] { return encoder.caches(1, 8); });
  const nn::TransformerDecoder decoder(8, 2, 2, options);
  const auto memory = position(7, 3).detach();
  step_layers_with_a_fault(decoder, [&] { return decoder.caches(memory, 8); });
}

TEST_CASE("a fault while a language model reads: what throws has read nothing") {
  manual_seed(1);
  models::CharGpt gpt(5, {.layers = 2, .width = 8, .heads = 2, .context = 3});
  models::CharLstm lstm(5, {.embedding = 8, .hidden = 8, .layers = 1});
  for (models::LanguageModel* model : {static_cast<models::LanguageModel*>(&gpt), static_cast<models::LanguageModel*>(&lstm)}) {
    model->inference();
    const auto make = [&] {
      const auto read = model->reader();
      // Position 2 begins the context of 3 anew.
      return Reader{[=](int number) { return read(std::vector<std::int32_t>(number == 0 ? 2 : 1, number)); }, {}};
    };
    for (const bool waits : {false, true}) read_with_a_fault(make, waits, Again::evaluated);
  }
}
