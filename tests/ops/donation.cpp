// Values that are made in the memory of others: of those only that nobody can ask for any more.
#include "tests/ops/donation.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "clnet/clnet.h"
#include "clnet/opencl.h"
#include "lib/base/env.h"
#include "lib/exec/fuse/fusion.h"
#include "lib/exec/place/placement.h"
#include "tests/ops/check.h"
#include "tests/support/second_device.h"

using namespace clnet;
using namespace clnet::testing;

namespace {

/// On a device that checks accesses every value has memory of its own. What is computed at once has a reader that comes later.
bool donates() {
  return Device::current().info().reuses_buffers && exec::Options::now().shares && exec::Options::now().fuses &&
         !env::flag("CLNET_EAGER");
}

}  // namespace

TEST_CASE("a slice of what nobody else needs is written in place") {
  Tensor x = rows(8, 3, 0);
  Floats expected = values_of(x);
  const auto memory = memory_of(x);
  for (std::int64_t row = 0; row + 2 <= 8; ++row) {
    const Tensor part = rows(2, 3, 100.0F * static_cast<float>(row));
    x = slice_update(x, 0, row, part);
    x = x.detach();
    expected = updated(expected, 3, row, values_of(part));
    CHECK(values_of(x) == expected);
    if (donates()) CHECK(memory_of(x) == memory);
  }
}

TEST_CASE("a slice leaves what somebody may still ask for as it is") {
  Tensor x = rows(8, 3, 0);
  const Floats before = values_of(x);
  const auto memory = memory_of(x);
  const Tensor part = rows(2, 3, 100);
  const Floats after = updated(before, 3, 4, values_of(part));
  const auto update = [&] {
    x = slice_update(x, 0, 4, part);
    CHECK(values_of(x) == after);
    CHECK(memory_of(x) != memory);
  };
  SECTION("through a handle") {
    const Tensor held = x;
    update();
    CHECK(values_of(held) == before);
  }
  SECTION("through a detached handle") {
    const Tensor held = x.detach();
    update();
    CHECK(values_of(held) == before);
  }
  SECTION("through a view that is not evaluated") {
    const Tensor view = reshape(x, {24});
    update();
    CHECK(values_of(view) == before);
  }
  SECTION("through a view that is") {
    const Tensor view = slice(x, 0, 4, 8);
    view.eval();
    update();
    CHECK(values_of(view) == Floats(before.begin() + 12, before.end()));
  }
  SECTION("through a graph that is to be evaluated") {
    const Tensor doubled = x * 2.0;
    update();
    CHECK(values_of(doubled)[12] == 2 * before[12]);
  }
  SECTION("through another slice of it") {
    const Tensor branch = slice_update(x, 0, 4, part * 2.0);
    update();
    CHECK(values_of(branch) == updated(before, 3, 4, values_of(part * 2.0)));
  }
  SECTION("in the same evaluation") {
    const Tensor total = sum(x);
    x = slice_update(x, 0, 4, part);
    eval({x, total});
    CHECK(values_of(x) == after);
    CHECK(total.item<float>() == 276);
  }
  SECTION("through the gradient of what is made of it") {
    const Tensor weight = rows(8, 3, 1);
    const Tensor next = slice_update(x, 0, 4, part), loss = sum(square(next) * weight);
    x = next;
    CHECK(values_of(x) == after);
    CHECK(values_of(gradients(loss, {weight})[0])[12] == 10000);
  }
  SECTION("through a parameter") {
    const nn::Parameter parameter(x);
    update();
    CHECK(values_of(parameter.value()) == before);
  }
  SECTION("while it is being read") {
    auto reading = x.read_async();
    x = slice_update(x, 0, 4, part);
    CHECK(values_of(x) == after);
    CHECK(reading.get() == before);
  }
  SECTION("through its buffer") {
    const auto held = opencl::buffer(x);
    update();
    Floats found(before.size());
    const cl::CommandQueue queue(opencl::queue(Device::current()), true);
    queue.enqueueReadBuffer(cl::Buffer(held.memory, true), CL_TRUE, held.offset, sizeof(float) * found.size(), found.data());
    CHECK(found == before);
  }
}

TEST_CASE("a slice is cut off where it leaves its input, in place, too") {
  for (const std::int64_t start : {-1, 3}) {
    const Tensor at = Tensor::scalar(static_cast<double>(start), Dtype::i64);
    for (const bool known : {true, false}) {
      Tensor x = rows(4, 3, 0);
      const Floats before = values_of(x);
      x = slice_update(x, 0, known ? at : at + Tensor::from(std::vector<std::int64_t>{0}, Shape{}), rows(2, 3, 100));
      Floats expected = before;
      for (std::size_t i = 0; i < 3; ++i) expected[(start < 0 ? 0 : 9) + i] = 100 + static_cast<float>(i + (start < 0 ? 3 : 0));
      CHECK(values_of(x) == expected);
    }
  }
}

TEST_CASE("slices of slices within one evaluation") {
  Floats expected = values_of(rows(6, 5, 0));
  Tensor x = rows(6, 5, 0) + 0.0;
  for (std::int64_t row = 0; row < 6; ++row) {
    const Tensor part = rows(1, 5, 50.0F * static_cast<float>(row));
    x = slice_update(x, 0, row, part + narrow(x, 0, (row + 3) % 6, 1));
    Floats sum = values_of(part);
    for (std::size_t i = 0; i < 5; ++i) sum[i] += expected[static_cast<std::size_t>((row + 3) % 6 * 5) + i];
    expected = updated(expected, 5, row, sum);
  }
  CHECK(values_of(x) == expected);
}

TEST_CASE("imported memory is its owner's") {
  const auto& device = Device::current();
  const cl::Context context(opencl::context(device), true);
  const cl::CommandQueue queue(opencl::queue(device), true);
  const Floats before{1, 2, 3, 4, 5, 6};
  const cl::Buffer buffer(context, CL_MEM_READ_WRITE, sizeof(float) * before.size());
  queue.enqueueWriteBuffer(buffer, CL_TRUE, 0, sizeof(float) * before.size(), before.data());
  Tensor x = opencl::from_buffer(device, buffer(), {Shape{3, 2}, Dtype::f32});
  x = slice_update(x, 0, 1, rows(1, 2, 9));
  CHECK(values_of(x) == Floats{1, 2, 9, 10, 5, 6});
  Floats found(before.size());
  queue.enqueueReadBuffer(buffer, CL_TRUE, 0, sizeof(float) * found.size(), found.data());
  CHECK(found == before);
}

TEST_CASE("caches of keys and values grow in place, and branch where they are copied") {
  manual_seed(3);
  nn::MultiheadAttention layer(8, 2, {.batch_first = true});
  const auto x = [](int step) { return make_tensor({1, 1, 8}, static_cast<std::uint64_t>(step)).detach(); };
  auto cache = layer.cache(1, 8), apart = layer.cache(1, 8);
  std::set<std::uint64_t> memory;
  for (int step = 0; step < 8; ++step) {
    if (step == 5) {
      // Another continuation of the same beginning.
      nn::KVCache branch{nn::Parameter(cache.k.value()), nn::Parameter(cache.v.value()), cache.length};
      const auto k = values_of(cache.k.value());
      const auto other = values_of(layer.step(x(100), branch));
      CHECK(values_of(cache.k.value()) == k);
      CHECK(other != values_of(layer.step(x(5), cache)));
    } else {
      (void)values_of(layer.step(x(step), cache));
    }
    const exec::NoMemorySharing copied;
    const auto expected = values_of(layer.step(x(step), apart));
    CHECK(values_of(cache.k.value()) == values_of(apart.k.value()));
    CHECK(values_of(cache.v.value()) == values_of(apart.v.value()));
    memory.insert(memory_of(cache.k.value()));
  }
  // The first step makes it of what is there.
  if (donates()) CHECK(memory.size() <= 3);
}

TEST_CASE("an optimizer makes the states of its parameters where the old ones lie, and leaves what a caller holds") {
  const auto make = [] {
    manual_seed(1);
    return nn::Sequential{nn::Linear{6, 5}, relu, nn::Linear{5, 5}, relu, nn::Linear{5, 5}};
  };
  auto net = make(), plain = make();
  const auto memory = [&](const optim::Optimizer& optimizer) {
    std::set<std::uint64_t> found;
    for (const auto& [name, tensor] : optimizer.state_dict())
      if (name.find('.') != std::string::npos && name.find("rate") == std::string::npos && tensor.rank() > 0)
        found.insert(memory_of(tensor));
    return found;
  };
  const auto loss_of = [](nn::Module& model, int step) {
    return mean(square(model(make_tensor({4, 6}, static_cast<std::uint64_t>(step)))));
  };
  for (const auto* name : {"adam", "sgd", "rmsprop", "lion", "adagrad", "nadam", "lamb"}) {
    INFO(name);
    optim::NamedOptions options{.learning_rate = 1e-2};
    auto optimizer = optim::make(name, net, options);
    auto reference = optim::make(name, plain, options);
    const auto both = [&](int step) {
      const float loss = optimizer.step(loss_of(net, step)).item<float>();
      const exec::NoMemorySharing apart;
      CHECK(loss == reference.step(loss_of(plain, step)).item<float>());
      const auto a = optimizer.state_dict(), b = reference.state_dict();
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].second.to_vector<float>() == b[i].second.to_vector<float>());
    };
    both(0);
    const auto first = memory(optimizer);
    both(1);
    if (donates() && optimizer.state_dict().size() > 4) CHECK(memory(optimizer) == first);
    const auto held = optimizer.state_dict();
    std::vector<Floats> then;
    for (const auto& [key, tensor] : held) then.push_back(tensor.to_vector<float>());
    both(2);
    both(3);
    for (std::size_t i = 0; i < held.size(); ++i) CHECK(held[i].second.to_vector<float>() == then[i]);
    // What two optimizers share is neither's to overwrite.
    auto other = optim::make(name, plain, options);
    other.load_state_dict(optimizer.state_dict());
    other.step(loss_of(plain, 9));
    plain.load_state_dict(net.state_dict());
    reference.load_state_dict(optimizer.state_dict());
    both(4);
  }
}

TEST_CASE("states on another device than the current one are made in place beside what is on no device") {
  const Device here = Device::current(), second = test::second_device();
  const auto make = [&] {
    manual_seed(1);
    nn::Sequential net{nn::Linear{6, 5}, relu, nn::Linear{5, 5}};
    net.to(second);
    return net;
  };
  auto net = make(), plain = make();
  optim::Adam adam(net, {.learning_rate = 1e-2}), reference(plain, {.learning_rate = 1e-2});
  const auto states = [&](const optim::Optimizer& optimizer) {
    io::StateDict found;
    for (auto& [name, tensor] : optimizer.state_dict())
      if (name.find("exp_avg") != std::string::npos) found.emplace_back(name, tensor);
    return found;
  };
  const auto memory = [&] {
    std::set<std::uint64_t> found;
    for (const auto& [name, tensor] : states(adam)) found.insert(memory_of(tensor));
    return found;
  };
  // `goes_home`: what comes after a copy may fail when the states have been overwritten.
  const auto step = [&](int number, bool goes_home) {
    const auto with = [&](nn::Module& model, optim::Optimizer& optimizer) {
      const Tensor loss = mean(square(model(make_tensor({4, 6}, static_cast<std::uint64_t>(number)))));
      const Tensor free = arange(4) * static_cast<double>(number), more = goes_home ? copy_to(loss, here) : loss;
      auto result = optimizer.step(loss, {free, more}).to_vector<float>();
      CHECK(values_of(free).back() == 3 * static_cast<float>(number));
      CHECK(values_of(more) == result);
      return result;
    };
    const auto made = with(net, adam);
    const exec::NoMemorySharing apart;
    CHECK(made == with(plain, reference));
    const auto a = states(adam), b = states(reference);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(values_of(a[i].second) == values_of(b[i].second));
  };
  step(0, false);
  const auto first = memory();
  step(1, false);
  if (donates()) CHECK(memory() == first);
  step(2, true);
  const auto held = states(adam);
  std::vector<Floats> then;
  for (const auto& [name, tensor] : held) then.push_back(values_of(tensor));
  step(3, false);
  step(4, true);
  for (std::size_t i = 0; i < held.size(); ++i) CHECK(values_of(held[i].second) == then[i]);
}

TEST_CASE("sums of gradients are added to in place") {
  nn::Conv2d net(1, 2, 2, {.bias = false});
  optim::SGD sgd(net, {.learning_rate = 1});
  const auto loss = [&] { return sum(net(ones({2, 1, 3, 3}))); };
  sgd.accumulate(loss());
  const auto sum_of = [&] {
    for (const auto& [name, tensor] : sgd.state_dict())
      if (name == "weight.grad") return tensor;
    throw std::logic_error("no sum");
  };
  const auto memory = memory_of(sum_of());
  sgd.accumulate(loss());
  if (donates()) CHECK(memory_of(sum_of()) == memory);
  const Tensor held = sum_of();
  sgd.accumulate(loss());
  CHECK(values_of(held) == Floats(8, 16.0F));
  CHECK(values_of(sum_of()) == Floats(8, 24.0F));
}

TEST_CASE("random histories of tensors that are written in slices, held, viewed and let go") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
  struct Known {
    Tensor tensor;
    Floats values;
  };
  constexpr std::int64_t height = 5, width = 3;
  std::vector<Known> live;
  const auto fresh = [&] {
    const Tensor x = rows(height, width, static_cast<float>(below(100)));
    return Known{x, values_of(x)};
  };
  for (int i = 0; i < 3; ++i) live.push_back(fresh());
  std::vector<Known> held;
  for (int step = 0; step < 600; ++step) {
    auto& [x, values] = live[below(live.size())];
    switch (below(9)) {
      case 0: held.push_back({x, values}); break;
      case 1: held.push_back({x.detach(), values}); break;
      case 2: held.push_back({reshape(x, {height * width}), values}); break;
      case 3: {
        const Tensor middle = slice(x, 0, 1, 4);
        if (below(2) == 0) middle.eval();
        held.push_back({middle, Floats(values.begin() + width, values.begin() + 4 * width)});
        break;
      }
      case 4:
        if (!held.empty()) held.erase(held.begin() + static_cast<std::ptrdiff_t>(below(held.size())));
        break;
      case 5: live[below(live.size())] = fresh(); break;
      case 6: {
        Floats twice = values;
        for (auto& value : twice) value *= 2;
        held.push_back({x * 2.0, twice});
        break;
      }
      default: {
        const auto row = static_cast<std::int64_t>(below(height - 1));
        const Tensor part = rows(2, width, static_cast<float>(below(100)));
        values = updated(values, width, row, values_of(part));
        x = slice_update(x, 0, row, part);
        if (below(3) > 0) x = x.detach();
      }
    }
    if (held.size() > 6) held.erase(held.begin());
    for (const auto* list : {&live, &held}) {
      const auto& known = *list;
      if (known.empty() || below(3) > 0) continue;
      const auto& [tensor, expected] = known[below(known.size())];
      REQUIRE(values_of(tensor) == expected);
    }
  }
  for (const auto* list : {&live, &held})
    for (const auto& [tensor, expected] : *list) CHECK(values_of(tensor) == expected);
}
